package procrun

import (
	"context"
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Two hundred pods start at once, each with the mounts that kubelet gives to every pod, and all run.
func TestTwoHundredPodsAtOnce(t *testing.T) {
	w := newWorld(t)
	volume, file := t.TempDir(), w.file("log", "")
	ids := make([]string, 200)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			pod := w.pod(fmt.Sprintf("pod-%d", i))
			ids[i] = w.start(pod, "echo up; sleep 1000", usualMounts(volume, file))
		})
	}
	all.Wait()
	for _, id := range ids {
		w.logged(id, "up")
	}
}

func usualMounts(token, message string) func(*v1.ContainerConfig) {
	return func(c *v1.ContainerConfig) {
		c.Mounts = []*v1.Mount{
			{ContainerPath: "/var/run/secrets/kubernetes.io/serviceaccount", HostPath: token, Readonly: true},
			{ContainerPath: "/dev/termination-log", HostPath: message},
		}
	}
}

// BenchmarkPod is a pod that runs "true", from nothing to nothing.
func BenchmarkPod(b *testing.B) {
	w := newWorld(b)
	mounts := usualMounts(b.TempDir(), w.file("message", ""))
	for b.Loop() {
		pod := w.pod("bench")
		w.run(pod, "", mounts, command("true"))
		w.must(w.RemovePodSandbox(context.Background(), pod))
	}
}
