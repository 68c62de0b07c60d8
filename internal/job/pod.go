package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
)

// evidence is what a pod shows about its replica. A replica is judged by its training container, so that a sidecar that
// never ends does not hold the job.
type evidence struct {
	// started: the training container runs or has run. running: it runs now.
	started, running bool
	// ready: it runs, and the pod's readiness probes agree.
	ready bool
	// succeeded: the training container exited with 0, and not because its pod was disrupted.
	succeeded bool
	// runFrom and runTo are the start and the end of the training container's last run; runTo is zero while it runs.
	runFrom, runTo time.Time
	// failure is how the pod ended for good, nil if it did not end badly.
	failure *Failure
	// inPlace is the number of failures after which the kubelet restarted the container; lastInPlace is the newest.
	inPlace     int32
	lastInPlace *Failure
	// waiting says what a pod that does not run yet waits for.
	waiting string
}

func readPod(pod *corev1.Pod, r Replica, container string) evidence {
	main := trainingStatus(pod, container)
	e := evidence{
		running: main.State.Running != nil,
		started: main.State.Running != nil || main.State.Terminated != nil || main.LastTerminationState.Terminated != nil ||
			main.RestartCount > 0 || pod.Status.Phase == corev1.PodSucceeded,
	}
	e.ready = e.running && isReady(pod)
	e.runFrom, e.runTo = lastRun(main)
	e.inPlace, e.lastInPlace = failuresInPlace(pod, r, main)
	if endedWell(pod, main) {
		e.succeeded = true
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			e.inPlace = 0 // from here on the kubelet runs it again because it ended, not because it failed
		}
		return e
	}
	e.failure = failureOf(pod, r, main, e.started)
	if e.failure == nil && !e.running {
		e.waiting = waitsFor(pod, container)
	}
	return e
}

// lastRun is when the container last started, and when that run ended; zero where it has not. The kubelet dates a start that
// never was to 1970.
func lastRun(c corev1.ContainerStatus) (from, to time.Time) {
	if c.State.Running != nil {
		return c.State.Running.StartedAt.Time, time.Time{}
	}
	for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if end != nil && end.StartedAt.Unix() > 0 {
			return end.StartedAt.Time, end.FinishedAt.Time
		}
	}
	return time.Time{}, time.Time{}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// trainingStatus is the status of the named container, or of the first where none bears the name.
func trainingStatus(pod *corev1.Pod, container string) corev1.ContainerStatus {
	name := TrainingContainer(pod.Spec, container)
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == name {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// TrainingContainer is the name of the container by which a pod is judged. A pod without containers has the name that its kind
// gives it.
func TrainingContainer(spec corev1.PodSpec, name string) string {
	if c := naming.TrainingContainer(&spec, name); c != nil {
		return c.Name
	}
	return name
}

// endedWell reports whether the training exited with 0 in a pod that was left alone: a training that saves a checkpoint and
// exits with 0 when it is evicted, shut down or deleted is not finished. Under restartPolicy Always the kubelet has usually started the
// container again by the time we look, so there its last end counts too.
func endedWell(pod *corev1.Pod, main corev1.ContainerStatus) bool {
	end := main.State.Terminated
	if end == nil && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		end = main.LastTerminationState.Terminated
	}
	if end == nil {
		return pod.Status.Phase == corev1.PodSucceeded
	}
	return end.ExitCode == 0 && !disrupted(pod, end)
}

// failuresInPlace counts how often the training or an init container ended badly and was, or is about to be, restarted
// by the kubelet in the same pod. An end caused by the deletion of the pod is not one.
func failuresInPlace(pod *corev1.Pod, r Replica, main corev1.ContainerStatus) (int32, *Failure) {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		return 0, nil
	}
	var last *corev1.ContainerStateTerminated
	count := func(c corev1.ContainerStatus) int32 {
		for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if end == nil || end.ExitCode == 0 {
				continue
			}
			if last == nil || last.FinishedAt.Before(&end.FinishedAt) {
				last = end
			}
			waits := c.State.Running == nil && (c.State.Terminated == nil || c.State.Terminated == end)
			if waits && !isOver(pod) && !disrupted(pod, end) {
				return c.RestartCount + 1
			}
		}
		return c.RestartCount
	}
	n := count(main)
	for _, c := range pod.Status.InitContainerStatuses {
		if !isSidecar(pod, c.Name) && hasFailed(c) {
			n += count(c)
		}
	}
	if n == 0 || last == nil {
		return n, nil
	}
	class := Application
	if slices.Contains(lostWithNode, last.Reason) {
		class = Disruption
	}
	return n, newFailure(pod, r, class, last)
}

// hasFailed reports whether the restarts of an init container were for failures. After a reboot the kubelet runs init containers
// again that succeeded, and counts that as a restart: then all ends that the status shows are good.
func hasFailed(c corev1.ContainerStatus) bool {
	good, bad := false, false
	for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		good = good || end != nil && end.ExitCode == 0
		bad = bad || end != nil && end.ExitCode != 0
	}
	return bad || !good
}

func isSidecar(pod *corev1.Pod, initContainer string) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == initContainer {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// isOver reports whether no container of the pod can run any more. The kubelet reports the ends of containers before the
// end of the pod: by the phase alone we would remove a pod that has just finished, and its log.
func isOver(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	n := len(pod.Status.ContainerStatuses)
	over := n > 0 && n == len(pod.Spec.Containers)
	for _, c := range pod.Status.ContainerStatuses {
		over = over && endedForGood(pod, c)
	}
	return over
}

// TrainingOver reports whether the training of a pod, which is its named container or the first, has written its last line.
func TrainingOver(pod *corev1.Pod, container string) bool {
	return isOver(pod) || endedForGood(pod, trainingStatus(pod, container))
}

// endedForGood reports whether a container has ended and is not started again in its pod.
func endedForGood(pod *corev1.Pod, c corev1.ContainerStatus) bool {
	return c.State.Terminated != nil && !restartsInPlace(pod, c.State.Terminated)
}

// restartsInPlace reports whether the kubelet starts a container again that ended like this.
func restartsInPlace(pod *corev1.Pod, end *corev1.ContainerStateTerminated) bool {
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return end.ExitCode != 0
	default:
		return true
	}
}

// whyUnscheduled is what the scheduler says about a pod for which it found no node; nothing if it found one, or has not looked yet.
func whyUnscheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			reason, _, _ := strings.Cut(c.Message, ". ") // what follows is about preemption, and helps nobody
			return head(reason, 200)
		}
	}
	return ""
}

// waitsFor says what keeps a pod's training from running, in words that stay the same while it waits; nothing while it
// is only starting.
func waitsFor(pod *corev1.Pod, container string) string {
	if why := whyUnscheduled(pod); why != "" {
		return "it cannot be scheduled: " + why
	}
	for _, c := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), trainingStatus(pod, container)) {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "", "ContainerCreating", "PodInitializing":
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			return fmt.Sprintf("the image %s of container %s cannot be pulled", c.Image, c.Name)
		case "CrashLoopBackOff":
			return fmt.Sprintf("container %s keeps failing", c.Name)
		default:
			return fmt.Sprintf("container %s cannot start: %s: %s", c.Name, w.Reason, head(w.Message, 200))
		}
	}
	return ""
}
