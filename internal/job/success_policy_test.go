package job

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSuccess(t *testing.T) {
	workers := func(rule SuccessRule) func(*Job) {
		return func(j *Job) { j.Success = Success{Role: "Worker", Rule: rule} }
	}
	for _, row := range []struct {
		sentence string
		job      Job
		done     string // pods that exited with 0
		want     bool
	}{
		{"the Master decides alone", demo(2), "master-0", true},
		{"Workers do not decide where there is a Master", demo(2), "worker-0 worker-1", false},
		{"all Workers: one is not enough", demo(2, workers(SuccessAll)), "worker-0", false},
		{"all Workers", demo(2, workers(SuccessAll)), "worker-0 worker-1", true},
		{"the first Worker", demo(2, workers(SuccessFirst)), "worker-0", true},
		{"another than the first Worker", demo(2, workers(SuccessFirst)), "worker-1", false},
		{"where no role is named, all: the Workers are not enough", demo(2, func(j *Job) { j.Success.Role = "" }), "worker-0 worker-1", false},
		{"where no role is named, all", demo(2, func(j *Job) { j.Success.Role = "" }), "worker-0 worker-1 master-0", true},
		{"any Worker, but not while others run", demo(2, workers(SuccessAny)), "worker-1", false},
		{"any Worker, once none runs any more", demo(2, workers(SuccessAny)), "worker-0 worker-1", true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := started(t, row.job)
			for _, name := range strings.Fields(row.done) {
				w.exit(w.pods["demo-"+name], 0, "Completed", "")
			}
			d := decide(w)
			if got := d.Status.Is(Succeeded); got != row.want {
				t.Errorf("succeeded %v, want %v", got, row.want)
			}
		})
	}
}

func TestASidecarDoesNotHoldTheJob(t *testing.T) {
	w := started(t, demo(0))
	pod := w.pods["demo-master-0"]
	w.exit(pod, 0, "Completed", "")
	pod.Status.Phase = "Running"
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "mesh"})
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: "mesh", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	})
	w.changed()
	d := decide(w)
	if !d.Status.Is(Succeeded) || len(d.DeletePods) != 1 {
		t.Errorf("succeeded %v, %d pods stopped", d.Status.Is(Succeeded), len(d.DeletePods))
	}
}
