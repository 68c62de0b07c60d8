package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/text"
)

// Class says whose fault a failure is.
type Class string

// The classes of failures.
const (
	// Application: a container ended with a code of its own, was killed for the memory it took, or was evicted for exceeding a
	// limit of its own.
	Application Class = "Application"
	// Disruption: evicted, preempted, node lost or rebooted, deleted by somebody else.
	Disruption Class = "Disruption"
	// Refusal: its kubelet refused the pod before any container ran. Nobody has trained, so the pod is replaced alone.
	Refusal Class = "Refusal"
)

// Failure is a replica that ended badly.
type Failure struct {
	Replica
	Pod, Node string
	// ExitCode is zero where no container ended by itself; Signal is the one that ended it, if any.
	ExitCode, Signal int32
	Reason, Message  string
	Time             time.Time
	Class            Class
}

// disruptions are the reasons with which the kubelet, the scheduler or a controller fails a pod through no fault of the pod.
var disruptions = []string{"NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting", "Preempted", "NodeAffinity"}

const (
	reasonEvicted   = "Evicted"
	reasonOOMKilled = "OOMKilled"
	sigabrt         = 6
)

// lostWithNode are the reasons of containers that were gone when their node came back, usually after a reboot: the kubelet's
// own, with exit code 137, and containerd's, with 255.
var lostWithNode = []string{"ContainerStatusUnknown", "Unknown"}

// failureOf reads how a pod ended, nil if it did not end badly or the kubelet will restart it in place. A pod that is
// deleted before its training began has lost nothing: it is created again.
func failureOf(pod *corev1.Pod, r Replica, main corev1.ContainerStatus, started bool) *Failure {
	end := endOf(pod, main)
	failed := end != nil && end.ExitCode != 0
	ended := pod.Status.Phase == corev1.PodFailed || failed && pod.Spec.RestartPolicy == corev1.RestartPolicyNever ||
		end != nil && !failed && disrupted(pod, end)
	deleted := pod.DeletionTimestamp != nil && started
	switch {
	case !ended && !deleted:
		return nil
	case ended && neverRan(pod):
		return newFailure(pod, r, Refusal, nil)
	case ended && exceededOwnLimit(pod), ended && failed && !disrupted(pod, end):
		return newFailure(pod, r, Application, end)
	default:
		return newFailure(pod, r, Disruption, end)
	}
}

// endOf is the end of the training container, or else of an init container that failed; nil if neither has ended.
func endOf(pod *corev1.Pod, main corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if main.State.Terminated != nil {
		return main.State.Terminated
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if end := c.State.Terminated; end != nil && end.ExitCode != 0 {
			return end
		}
	}
	return nil
}

// neverRan reports whether no container of the pod has ever run, as far as its status shows.
func neverRan(pod *corev1.Pod) bool {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0 {
			return false
		}
	}
	return true
}

// exceededOwnLimit reports whether the pod was evicted for its own limit on an emptyDir or on ephemeral storage. A kubelet that
// evicts because its node lacks something marks the pod as the target of a disruption.
func exceededOwnLimit(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == reasonEvicted && disruptionTarget(pod) == nil
}

// disrupted reports whether a container's end has a cause outside it: the pod says so, or was being deleted before. A container
// that ended well and only then was disrupted has ended well.
func disrupted(pod *corev1.Pod, end *corev1.ContainerStateTerminated) bool {
	if target := disruptionTarget(pod); target != nil && endedAfter(end, target.LastTransitionTime.Time) {
		return true
	}
	if slices.Contains(disruptions, pod.Status.Reason) || exceededOwnLimit(pod) && end.ExitCode == 0 || slices.Contains(lostWithNode, end.Reason) && end.ExitCode != 0 {
		return true
	}
	if end.ExitCode == 0 {
		return pod.DeletionTimestamp != nil && endedAfter(end, deletionAsked(pod))
	}
	return pod.DeletionTimestamp != nil && !end.FinishedAt.Time.Before(deletionAsked(pod))
}

// clockSkew is by how much the clock of a node may be behind that of the control plane.
const clockSkew = time.Minute

// endedAfter reports whether a container may have ended because of a disruption at that time. A failure under a disruption is taken
// for its effect. An exit with 0 counts as success only if it clearly came first: a training that is taken for finished is lost,
// one that is run again from its last checkpoint is not.
func endedAfter(end *corev1.ContainerStateTerminated, disruption time.Time) bool {
	return end.ExitCode != 0 || !end.FinishedAt.Add(clockSkew).Before(disruption)
}

func disruptionTarget(pod *corev1.Pod) *corev1.PodCondition {
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// deletionAsked is when the deletion of the pod was requested; its deletion timestamp lies a grace period later.
func deletionAsked(pod *corev1.Pod) time.Time {
	asked := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		asked = asked.Add(-time.Duration(*grace) * time.Second)
	}
	return asked
}

func newFailure(pod *corev1.Pod, r Replica, class Class, end *corev1.ContainerStateTerminated) *Failure {
	f := &Failure{Replica: r, Pod: pod.Name, Node: pod.Spec.NodeName, Class: class}
	if end != nil {
		f.ExitCode, f.Reason, f.Message, f.Time = end.ExitCode, end.Reason, explained(tail(text.PlainLines(end.Message), 1024)), end.FinishedAt.UTC()
		if f.Signal = end.Signal; f.Signal == 0 && end.ExitCode > 128 && end.ExitCode < 160 {
			f.Signal = end.ExitCode - 128
		}
	}
	if class == Application && !exceededOwnLimit(pod) {
		return f
	}
	logged := f.Message
	f.Reason, f.Message = pod.Status.Reason, head(text.PlainLines(pod.Status.Message), 1024)
	if class == Application {
		return f
	}
	if target := disruptionTarget(pod); target != nil {
		if f.Reason == "" {
			f.Reason, f.Message = target.Reason, head(text.PlainLines(target.Message), 1024)
		}
		f.Time = target.LastTransitionTime.UTC()
	} else if pod.DeletionTimestamp != nil {
		f.Time = deletionAsked(pod).UTC()
	}
	if f.Reason == "" {
		f.Reason, f.Message = "Disrupted", logged
		if class == Refusal {
			f.Reason = "Refused"
		}
		if pod.DeletionTimestamp != nil {
			f.Reason, f.Message = "Deleted", "the pod was deleted while it was needed"
		}
	}
	return f
}

// at is the failure with a time: the given one where nobody knows when it happened.
func (f *Failure) at(now time.Time) *Failure {
	dated := *f
	if dated.Time.IsZero() {
		dated.Time = ceil(now)
	}
	return &dated
}

// vanished is the failure of a replica whose pod is gone though its training had begun.
func vanished(j Job, r Replica) *Failure {
	return &Failure{
		Replica: r, Pod: j.PodName(r), Class: Disruption, Reason: "Vanished", Message: "the pod was deleted while it was needed",
	}
}

// String is the failure as a person wants to read it: who, where, how.
func (f *Failure) String() string {
	where := "pod " + f.Pod
	if f.Node != "" {
		where += " on node " + f.Node
	}
	how := ""
	switch {
	case f.Class == Disruption:
		how = "was disrupted (" + f.Reason + ")"
	case f.Class == Refusal:
		how = "was refused by its node (" + f.Reason + ")"
	case f.Reason == reasonEvicted:
		how = "was evicted for exceeding its own limit"
	case f.Reason == reasonOOMKilled:
		how = fmt.Sprintf("ran out of memory (OOMKilled, exit code %d)", f.ExitCode)
	case f.Signal != 0:
		how = fmt.Sprintf("exited with code %d (%s)", f.ExitCode, signalName(f.Signal))
	default:
		how = fmt.Sprintf("exited with code %d", f.ExitCode)
	}
	return fmt.Sprintf("%s (%s) %s", f.Replica, where, how)
}

// lastLine is how a sentence about a failure ends: with the last line of the replica's log that has words, or the message of what
// disrupted it. Message has all of it.
func (f *Failure) lastLine() string {
	if f == nil || strings.TrimSpace(f.Message) == "" {
		return ""
	}
	words := []rune(lastWords(f.Message))
	if len(words) > 120 {
		words = append(words[:119], '…')
	}
	if f.Class == Disruption || f.Class == Refusal || f.Reason == reasonEvicted || remedyOf(f.Message) != "" {
		return ": " + string(words)
	}
	return "; it last said: " + string(words)
}

// lastWords is the last line of a message that has a letter or a digit: Open MPI, for one, ends what it says with a line of dashes.
func lastWords(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.IndexFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0 {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

func signalName(signal int32) string {
	names := map[int32]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
		9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM"}
	if name, ok := names[signal]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", signal)
}

// tail keeps the last n bytes of a text, the ones that matter in a log.
func tail(text string, n int) string {
	text = strings.TrimSpace(text)
	if len(text) > n {
		text = "…" + text[len(text)-n:]
	}
	return strings.ToValidUTF8(text, "")
}

// head keeps the first n bytes of a text.
func head(text string, n int) string {
	text = strings.TrimSpace(text)
	if len(text) > n {
		text = text[:n] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
