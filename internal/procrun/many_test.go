package procrun

import (
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Two hundred pods start at once, each with mounts as kubelet makes them, and each reaches its neighbour's state.
func TestTwoHundredPodsAtOnce(t *testing.T) {
	w := newWorld(t)
	volume, file := t.TempDir(), w.file("log", "")
	begun := time.Now()
	ids := make([]string, 200)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			pod := w.pod(fmt.Sprintf("pod-%d", i))
			ids[i] = w.start(pod, "echo up; sleep 1000", func(c *v1.ContainerConfig) {
				c.Mounts = []*v1.Mount{
					{ContainerPath: "/var/run/secrets/kubernetes.io/serviceaccount", HostPath: volume, Readonly: true},
					{ContainerPath: "/dev/termination-log", HostPath: file},
				}
			})
		})
	}
	all.Wait()
	t.Logf("200 pods started in %s", time.Since(begun))
	for _, id := range ids {
		w.logged(id, "up")
	}
}
