package job

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A job of a thousand pods is decided on in a few milliseconds: it is done whenever one of them changes.
func BenchmarkDecide(b *testing.B) {
	for name, live := range map[string]func(*world){
		"running":        func(*world) {},
		"a member falls": func(w *world) { w.exit(w.pods["demo-worker-7"], 1, "Error", "") },
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(demo(1000))
			for _, role := range w.job.Roles {
				for i := range role.Replicas {
					pod := w.newPod(Replica{role.Name, i}, 0, "j1")
					pod.Spec.NodeName, pod.Status.Phase = "n1", corev1.PodRunning
					w.main(pod).State.Running = &corev1.ContainerStateRunning{}
					w.pods[pod.Name] = pod
				}
			}
			w.changed()
			if err := w.runToRest(nil); err != nil {
				b.Fatal(err)
			}
			live(w)
			o := w.observe(0)
			o.Live = true
			for b.Loop() {
				Decide(o)
			}
		})
	}
}
