package procrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// again starts a new runtime on the directory of one that is gone as if its process had been killed.
func (w *world) again() *world {
	w.Helper()
	w.must(w.Close(context.Background()))
	r, err := New(w.config)
	w.must(err)
	w.Runtime = r
	return w
}

// snapshot copies the records as they are, which is what a killed process leaves.
func (w *world) snapshot() func() {
	w.Helper()
	files := map[string][]byte{}
	for _, dir := range []string{"sandboxes", "containers"} {
		paths, err := filepath.Glob(w.Runtime.dir(dir, "*.json"))
		w.must(err)
		for _, path := range paths {
			files[path], err = os.ReadFile(path)
			w.must(err)
		}
	}
	return func() {
		for path, text := range files {
			w.must(os.WriteFile(path, text, 0o600))
		}
	}
}

func TestWhatIsLeftAfterACrash(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("survivor")
	finished := w.start(pod, "echo once; exit 3")
	before := w.ended(finished)
	running := w.start(pod, "exec sleep 1000")
	created := w.create(pod, "true") // and never started: nobody's failure
	restore := w.snapshot()
	w.must(w.Close(context.Background()))
	restore()
	w.must(os.WriteFile(w.Runtime.dir("containers", "broken.json"), []byte("{"), 0o600))
	w.must(os.WriteFile(w.Runtime.dir("containers", "half.json.new"), []byte("{"), 0o600))
	w.again()

	sandboxes, err := w.ListPodSandbox(context.Background(), nil)
	w.must(err)
	if len(sandboxes) != 1 || sandboxes[0].GetId() != pod || sandboxes[0].GetState() != v1.PodSandboxState_SANDBOX_NOTREADY ||
		sandboxes[0].GetMetadata().GetName() != "survivor" || sandboxes[0].GetLabels()["pod"] != "survivor" {
		t.Errorf("sandboxes are %v", sandboxes)
	}
	containers, err := w.ListContainers(context.Background(), nil)
	w.must(err)
	if len(containers) != 2 || slices.ContainsFunc(containers, func(c *v1.Container) bool { return c.GetId() == created }) {
		t.Errorf("containers are %v", containers)
	}
	if status := w.ended(running); status.GetExitCode() != 137 || status.GetReason() != "ContainerStatusUnknown" || status.GetFinishedAt() == 0 || status.GetMessage() != stoppedMessage {
		t.Errorf("a container that ran is %v", status)
	}
	after := w.ended(finished)
	if after.GetExitCode() != 3 || after.GetFinishedAt() != before.GetFinishedAt() || after.GetStartedAt() != before.GetStartedAt() ||
		after.GetImage().GetImage() != "any" || after.GetLogPath() != before.GetLogPath() {
		t.Errorf("a container that had ended is %v, was %v", after, before)
	}
	if w.log(finished) != "once\n" {
		t.Errorf("its log is %q", w.log(finished))
	}
	w.must(w.RemovePodSandbox(context.Background(), pod))
	for _, dir := range []string{"sandboxes", "containers", "pods"} {
		if left, _ := filepath.Glob(w.Runtime.dir(dir, "*")); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
}

// A container that stops with the runtime keeps its code, but has neither failed nor completed by itself.
func TestAnOrderlyStopIsRecorded(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("orderly")
	codes := map[string]int32{}
	for answer, recorded := range map[int]int32{5: 5, 0: 143} {
		id := w.start(pod, fmt.Sprintf("trap 'exit %d' TERM; echo ready; while :; do sleep 0.05; done", answer))
		codes[id] = recorded
		w.logged(id, "ready")
	}
	created := w.create(pod, "true")
	s, err := w.sandbox(pod)
	w.must(err)
	w.closing.Store(true) // and kubelet, which goes on for a moment, restarts what has ended
	if _, err := w.CreateContainer(context.Background(), pod, &v1.ContainerConfig{}, s.config); !errors.Is(err, errClosing) {
		t.Errorf("a container is made: %v", err)
	}
	if err := w.StartContainer(context.Background(), created); !errors.Is(err, errClosing) {
		t.Errorf("a container is started: %v", err)
	}
	w.again()
	if _, err := w.container(created); err == nil {
		t.Error("a container that was never started has an end")
	}
	for id, code := range codes {
		if status := w.ended(id); status.GetExitCode() != code || status.GetReason() != "ContainerStatusUnknown" || status.GetMessage() != stoppedMessage {
			t.Errorf("recorded is %v, want code %d", status, code)
		}
	}
}
