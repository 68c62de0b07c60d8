package flyte

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Flyte's error codes for a pod that failed.
const (
	codeUnknown     = "UnknownError"
	codeOOMKilled   = "OOMKilled"
	codeInterrupted = "Interrupted"
)

const exitSIGKILL = 137

// pullGrace is how long Flyte lets a pod wait for its image or container by default.
const pullGrace = 3 * time.Minute

// readPod reports whether Flyte fails a task for this pod alone.
func readPod(pod *corev1.Pod, primary string, now time.Time) (Reading, bool) {
	switch pod.Status.Phase {
	case corev1.PodFailed:
		return readFailedPod(pod, primary), true
	case corev1.PodPending:
		return readPendingPod(pod, now)
	}
	return Reading{}, false
}

// readFailedPod: after an ordinary exit the pod has no reason, which Flyte 2 reads as a lost node.
func readFailedPod(pod *corev1.Pod, primary string) Reading {
	code, system := pod.Status.Reason, false
	if code == "" {
		code = codeUnknown
	}
	if code == "Shutdown" || code == "Terminated" {
		system = true
	}
	message := pod.Status.Message
	for _, c := range pod.Status.ContainerStatuses {
		ended := c.LastTerminationState.Terminated
		if ended == nil {
			ended = c.State.Terminated
		}
		if ended == nil {
			continue
		}
		switch {
		case strings.Contains(ended.Reason, codeOOMKilled):
			code = codeOOMKilled
		case ended.ExitCode == exitSIGKILL:
			code, system = codeInterrupted, system || c.Name == primary
		}
		message = strings.TrimSpace(fmt.Sprintf("%s\n[%s] terminated with exit code (%d). Reason [%s]", message, c.Name, ended.ExitCode, ended.Reason))
	}
	why := fmt.Sprintf("pod %s has failed; the conditions are not looked at", pod.Name)
	if code == codeUnknown {
		return Reading{PhaseSystem, codeInterrupted, message, why + "; it has no reason, so Flyte reads it as an interruption"}
	}
	if system {
		return Reading{PhaseSystem, codeInterrupted, message, why}
	}
	return Reading{PhaseRetryable, code, message, why}
}

// readPendingPod looks for a container that will never start.
func readPendingPod(pod *corev1.Pod, now time.Time) (Reading, bool) {
	var since time.Time
	notReady := false
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return Reading{}, false
		}
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			notReady, since = true, c.LastTransitionTime.Time
		}
	}
	if !notReady {
		return Reading{}, false
	}
	for _, c := range pod.Status.ContainerStatuses {
		waiting := c.State.Waiting
		if c.Ready || waiting == nil {
			continue
		}
		why := fmt.Sprintf("pod %s waits: %s; the conditions are not looked at", pod.Name, waiting.Reason)
		late := !now.Before(since.Add(pullGrace))
		switch waiting.Reason {
		case "ErrImagePull", "ContainerCreating", "PodInitializing":
			return Reading{}, false
		case "InvalidImageName", "CreateContainerConfigError":
			return Reading{PhasePermanent, waiting.Reason, waiting.Message, why}, true
		case "CreateContainerError":
			return Reading{PhasePermanent, waiting.Reason, waiting.Message, why}, late
		case "ImagePullBackOff":
			return Reading{PhaseRetryable, waiting.Reason, waiting.Message, why}, late
		}
		return Reading{PhaseSystem, waiting.Reason, waiting.Message, why}, true
	}
	return Reading{}, false
}
