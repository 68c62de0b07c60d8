package job

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func restarted(times int32, lastCode int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[1].RestartCount = times
		p.Status.ContainerStatuses[1].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: lastCode, FinishedAt: metav1.NewTime(epoch)}
	}
}

func waits(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[1].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "why"}}
	}
}

func TestFailuresInPlace(t *testing.T) {
	do := func(changes ...func(*corev1.Pod)) []func(*corev1.Pod) { return append(changes, inPlace) }
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: ptr(corev1.ContainerRestartPolicyAlways)}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", RestartCount: 7}}
		p.Status.ContainerStatuses[0].RestartCount = 7
	}
	fetch := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", RestartCount: 2}}
	}
	for _, row := range []struct {
		sentence string
		pod      []func(*corev1.Pod)
		want     int32
	}{
		{"none yet", do(), 0},
		{"restarted twice and running: two", do(restarted(2, 1)), 2},
		{"failed and about to be restarted: one", do(ended(1, "Error")), 1},
		{"restarted twice and failed again, waiting out the back-off: three", do(restarted(2, 1), waits("CrashLoopBackOff")), 3},
		{"restarted once, then succeeded: one", do(restarted(1, 1), ended(0, "Completed"), phase(corev1.PodSucceeded, "")), 1},
		{"ended by the pod's deletion: not one more", do(restarted(2, 1), ended(143, "Error"), deletedAt(epoch)), 2},
		{"evicted: not one more", do(restarted(2, 1), ended(137, "Error"), phase(corev1.PodFailed, "Evicted")), 2},
		{"restarts of sidecars do not count", do(sidecar), 0},
		{"restarts of init containers do", do(fetch), 2},
		{"but not after a reboot, when those that succeeded run again", do(fetch, func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed"}
		}), 0},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := readPod(aPod(row.pod...), Replica{"Worker", 0}, "pytorch").inPlace; got != row.want {
				t.Errorf("%d failures in place, want %d", got, row.want)
			}
		})
	}
}

func TestAlwaysSucceedsOnce(t *testing.T) {
	pod := aPod(restarted(1, 0), func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways })
	if e := readPod(pod, Replica{"Worker", 0}, "pytorch"); !e.succeeded || e.inPlace != 0 {
		t.Errorf("training that exited with 0 and was started again: succeeded %v, %d failures", e.succeeded, e.inPlace)
	}
}

func TestWaiting(t *testing.T) {
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes: 3 Insufficient cpu. preemption: 0/3 nodes."}}
		p.Status.ContainerStatuses = nil
	}
	for _, row := range []struct {
		sentence string
		pod      func(*corev1.Pod)
		want     string
	}{
		{"running: for nothing", func(*corev1.Pod) {}, ""},
		{"starting: nothing worth telling", waits("ContainerCreating"), ""},
		{"no room", unschedulable, "it cannot be scheduled: 0/3 nodes: 3 Insufficient cpu"},
		{"no image, first said one way", waits("ErrImagePull"), "the image  of container pytorch cannot be pulled"},
		{"no image, then another: the same words", waits("ImagePullBackOff"), "the image  of container pytorch cannot be pulled"},
		{"anything else in Kubernetes' words", waits("CreateContainerConfigError"), "container pytorch cannot start: CreateContainerConfigError: why"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := readPod(aPod(row.pod), Replica{"Worker", 0}, "pytorch").waiting; got != row.want {
				t.Errorf("waits for %q, want %q", got, row.want)
			}
		})
	}
}

func TestAPodIsOver(t *testing.T) {
	alone := func(p *corev1.Pod) {
		p.Spec.Containers, p.Status.ContainerStatuses = p.Spec.Containers[1:], p.Status.ContainerStatuses[1:]
	}
	always := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }
	for _, row := range []struct {
		sentence string
		pod      []func(*corev1.Pod)
		over     bool
	}{
		{"running: no", []func(*corev1.Pod){alone}, false},
		{"nothing is known of its containers yet: no", []func(*corev1.Pod){neverStarted}, false},
		{"its phase says so: yes", []func(*corev1.Pod){phase(corev1.PodFailed, "Evicted"), neverStarted}, true},
		{"its container has ended, its phase is still Running: yes", []func(*corev1.Pod){ended(0, "Completed"), alone}, true},
		{"its container has failed and is not restarted: yes", []func(*corev1.Pod){ended(1, "Error"), alone}, true},
		{"its container has failed and is restarted in place: no", []func(*corev1.Pod){ended(1, "Error"), alone, inPlace}, false},
		{"its container has ended and is run again all the same: no", []func(*corev1.Pod){ended(0, "Completed"), alone, always}, false},
		{"a sidecar still runs: no", []func(*corev1.Pod){ended(0, "Completed")}, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := isOver(aPod(row.pod...)); got != row.over {
				t.Errorf("over %v, want %v", got, row.over)
			}
		})
	}
}
