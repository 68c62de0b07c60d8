package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// savesSlowly is a pod that saves its work after SIGTERM, when the test lets it.
func savesSlowly(stage stage, file string, gracePeriod int64) *corev1.Pod {
	pod := local.Pod("slow", "trap '"+stage.until("save")+"; echo saved > "+file+"; exit 0' TERM; echo trains; while true; do sleep 0.1; done")
	pod.Spec.TerminationGracePeriodSeconds = &gracePeriod
	return pod
}

// A training that needs long to save its checkpoint has its pod's grace period when the cluster stops, however often the person types
// `down` meanwhile.
func TestUpGivesPodsTheirGracePeriod(t *testing.T) {
	t.Parallel()
	d, stage, file := desk{&local.World{TB: t}}, stage(t.TempDir()), filepath.Join(t.TempDir(), "saved")
	up := local.StartUp(t, t.TempDir()).Ready()
	w := local.At(t, up.Kubeconfig())
	w.Create(savesSlowly(stage, file, 3600))
	w.Await("trains", "logs", "slow")
	first := d.downWaits(up)
	up.Says("Waiting for 1 pod to end, whose grace period is up to 1h: " + w.Namespace + "/slow. Ctrl-C kills them.\n")
	up.Signal(syscall.SIGHUP) // a lost terminal kills nothing
	second := d.downWaits(up)
	stage.give(t, "save")
	if code := up.Wait(); code != 0 || !strings.HasSuffix(up.Output(), "Stopped.\n") {
		t.Errorf("it ends with code %d and says:\n%s", code, up.Output())
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the work is lost: %v", err)
	}
	d.expect(first(), 0, `^Stopped\.$`)
	d.expect(second(), 0, `^Stopped\.$`)
}

// downWaits types `down`. It returns when that has sent its signal and waits; what it returns waits for its end.
func (d desk) downWaits(up *local.Up) func() local.Outcome {
	d.Helper()
	said, down := &transcript{}, local.CLI("down", "--data-dir="+up.DataDir)
	down.Stdout, down.Stderr = said, said
	if err := down.Start(); err != nil {
		d.Fatal(err)
	}
	d.Eventually("down says that it waits", func() error {
		return said.has("^Waiting for running pods to end, within their grace periods. `kill \\d+` kills them.\n")
	})
	return func() local.Outcome {
		_ = down.Wait()
		return local.Outcome{Stdout: said.String(), Code: down.ProcessState.ExitCode()}
	}
}

// Ctrl-C again does not wait. `down` says how to do the same with a cluster in the background.
func TestASecondSignalKillsThePods(t *testing.T) {
	t.Parallel()
	d, stage := desk{&local.World{TB: t}}, stage(t.TempDir())
	up := local.StartUp(t, t.TempDir()).Ready()
	w := local.At(t, up.Kubeconfig())
	w.Create(savesSlowly(stage, "/dev/null", 3600))
	w.Await("trains", "logs", "slow")
	all := local.Below(up.Pid())
	down := d.downWaits(up)
	up.Says("Waiting for 1 pod to end")
	up.Signal(syscall.SIGTERM)
	if code := up.Wait(); code != 130 || !strings.HasSuffix(up.Output(), "Killed.\n") {
		t.Errorf("it ends with code %d and says:\n%s", code, up.Output())
	}
	d.expect(down(), 0, `^Stopped\.$`)
	for _, p := range all {
		if p.Alive() {
			t.Errorf("process %s is left", p)
		}
	}
}
