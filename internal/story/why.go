package story

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
)

// Why is one paragraph on why the job is in its state, and what to do about it. After restarts it also lists the attempts.
func (s Story) Why() string {
	name := s.Job.Name
	var sentences []string
	say := func(format string, args ...any) { sentences = append(sentences, fmt.Sprintf(format, args...)) }
	ledger := ""
	switch {
	case s.Job.Deleting:
		say("%s is being deleted, and is gone when its pods have ended.", name)
	case len(s.Status.Conditions) == 0:
		say("%s was submitted %s ago and no operator has looked at it yet.", name, Span(s.Now.Sub(s.Created)))
		say("Is one running? `trainyard up` starts one on your machine, `trainyard install` installs one on a cluster.")
	case s.Status.Is(job.Suspended) && s.Kueue != "":
		say("%s has been suspended for %s and %s. Kueue starts it.", name, Span(s.Now.Sub(s.Since())), s.Kueue)
	case s.Status.Is(job.Suspended):
		say("%s has been suspended for %s and has no pods.", name, Span(s.Now.Sub(s.Since())))
		say("%s starts it again.", s.Command("resume"))
	case s.Status.Is(job.Succeeded):
		say("%s succeeded %s ago%s%s.", name, Span(s.Now.Sub(s.Status.CompletionTime)), s.length(), s.restarts())
	case s.Status.Is(job.Failed):
		comma := ""
		if s.length() == "" {
			comma = ","
		}
		say("%s %s%s %s ago%s%s: %s.", name, s.verdict(), comma, Span(s.Now.Sub(s.Status.CompletionTime)), s.length(), s.restarts(), s.cause())
		sentences = append(sentences, s.remedy()...)
		if first := s.firstCause(); first != "" {
			say("The first failure was different: %s.", first)
		}
	default:
		sentences = append(sentences, s.whyNotDone()...)
	}
	if len(s.Status.Attempts) > 1 {
		ledger = "\n\n" + strings.TrimRight(s.Ledger(), "\n")
	}
	if f := s.Status.LastFailure; f != nil && f.Message != "" && !s.Status.Is(job.Succeeded) {
		ledger += fmt.Sprintf("\n\n%s last said:\n%s", f.Pod, strings.TrimRight(indent(f.Message, "  | "), "\n"))
	}
	return strings.Join(sentences, " ") + ledger + "\n"
}

// firstCause is why the first attempt failed. It is empty if the status no longer has it, or if it also ended the job.
func (s Story) firstCause() string {
	if len(s.Status.Attempts) < 2 || s.Status.Attempts[0].Number != 0 || s.Status.Attempts[0].Reason != job.ReasonRestarted {
		return ""
	}
	first, _, _ := strings.Cut(firstLine(s.Status.Attempts[0].Message), "; retry ")
	if strings.HasPrefix(s.cause(), first) {
		return ""
	}
	return first
}

// whyNotDone explains a job that has not ended.
func (s Story) whyNotDone() []string {
	sentences := []string{fmt.Sprintf("%s has been %s for %s, with %s replicas ready.", s.Job.Name, strings.ToLower(s.State()), Span(s.Now.Sub(s.Since())), ready(s.Status))}
	if n := s.Status.Retries + s.Status.Disruptions; n > 0 && s.Status.LastFailure != nil {
		sentences = append(sentences, fmt.Sprintf("It was restarted %s because %s.", times(n), s.Status.LastFailure))
	}
	if wait := s.waits(); wait != "" {
		switch {
		case strings.HasPrefix(wait, "waits "):
			wait = "It " + wait
		case !strings.Contains(wait, " waits: "):
			wait = "It waits: " + wait
		}
		sentences = append(sentences, strings.TrimRight(wait, ".")+".")
		if hint := s.hintFor(wait); hint != "" {
			sentences = append(sentences, hint)
		}
	}
	if next := s.next(); next != "" {
		sentences = append(sentences, next)
	}
	if deadline := s.Job.Policy.ActiveDeadlineSeconds; deadline != nil && !s.Status.StartTime.IsZero() {
		left := s.Status.StartTime.Add(job.Seconds(*deadline)).Sub(s.Now)
		sentences = append(sentences, fmt.Sprintf("Its deadline is in %s.", Span(left)))
	}
	return sentences
}

// next says what starts next and when: an attempt or a replica after its restart delay, or a container that kubelet restarts. It is
// empty if nothing waits to start.
func (s Story) next() string {
	if at := s.Status.NotBefore; at.After(s.Now) {
		return fmt.Sprintf("The next attempt starts in %s.", Span(at.Sub(s.Now)))
	}
	for _, r := range slices.SortedFunc(slices.Values(s.Status.Records), func(a, b job.Record) int { return a.NotBefore.Compare(b.NotBefore) }) {
		if r.NotBefore.After(s.Now) {
			return fmt.Sprintf("%s starts again in %s.", r, Span(r.NotBefore.Sub(s.Now)))
		}
	}
	for _, pod := range s.Pods {
		for _, c := range pod.Status.ContainerStatuses {
			if at := backOff(c); at.After(s.Now) {
				return fmt.Sprintf("The kubelet restarts pod %s in %s.", pod.Name, Span(at.Sub(s.Now)))
			}
			if end := c.State.Terminated; end != nil && end.ExitCode != 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyNever && pod.Status.Phase == corev1.PodRunning {
				return fmt.Sprintf("The kubelet restarts pod %s after its own delay, at most 5m.", pod.Name)
			}
		}
	}
	return ""
}

var backOffWords = regexp.MustCompile(`^back-off (\S+) restarting`)

// backOff is when the kubelet restarts a container that keeps failing. Only its message says so; it is zero if there is none yet.
func backOff(c corev1.ContainerStatus) time.Time {
	waits, end := c.State.Waiting, c.LastTerminationState.Terminated
	if waits == nil || end == nil {
		return time.Time{}
	}
	words := backOffWords.FindStringSubmatch(waits.Message)
	if words == nil {
		return time.Time{}
	}
	delay, err := time.ParseDuration(words[1])
	if err != nil {
		return time.Time{}
	}
	return end.FinishedAt.Add(delay)
}

func ready(s job.Status) string {
	if s.Ready == "" {
		return "no"
	}
	return strings.Replace(s.Ready, "/", " of ", 1)
}

func times(n int32) string {
	if n == 1 {
		return "once,"
	}
	return fmt.Sprintf("%d times, the last time", n)
}

// waits is what the job waits for: its own message, else what its pods and Kubernetes' warnings say.
func (s Story) waits() string {
	if s.Status.Message != "" {
		return s.Status.Message
	}
	if s.Status.Is(job.Running) {
		return ""
	}
	for _, pod := range s.Pods {
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		if n := len(s.Warnings); n > 0 {
			return s.Warnings[n-1]
		}
		if pod.Spec.NodeName == "" {
			return fmt.Sprintf("pod %s has no node yet", pod.Name)
		}
		return fmt.Sprintf("pod %s is being started on node %s", pod.Name, pod.Spec.NodeName)
	}
	return ""
}

// hints say what to do, by a word of what the job waits for.
var hints = []struct{ word, do string }{
	{"exceeded quota", "Free some of the namespace's quota, request less, or have the quota raised."},
	{"nsufficient", "Request fewer resources, free some on the nodes (`trainyard top` shows who uses what), or add a node."},
	{"cannot be pulled", "Check the image's name and that the cluster may pull it (imagePullSecrets)."},
	{"taint", "Add a toleration to the template, or a node without that taint."},
	{"affinity", "Check nodeSelector and affinity of the template against the nodes' labels."},
	{"persistentvolumeclaim", "Create the claim, or correct its name in the template's volumes."},
	{"belongs to something else", "Delete what has the name, or give the job another name."},
	{"TrainingRuntime", "Create it, and the job goes on; or delete the job and submit it with another runtimeRef."},
	{"keeps failing", "The log says why: LOGS."},
}

func (s Story) hintFor(wait string) string {
	for _, h := range hints {
		if strings.Contains(strings.ToLower(wait), strings.ToLower(h.word)) {
			return strings.Replace(h.do, "LOGS", s.Command("logs"), 1)
		}
	}
	return ""
}

// remedy is what to do about a failure.
func (s Story) remedy() []string {
	f := s.Status.LastFailure
	switch {
	case s.EndReason() == job.ReasonDeadlineExceeded && s.hintFor(s.cause()) != "":
		return []string{s.hintFor(s.cause())}
	case s.EndReason() == job.ReasonDeadlineExceeded:
		return []string{"Raise activeDeadlineSeconds, or make the training shorter."}
	case s.EndReason() == job.ReasonRefused:
		return []string{"Correct the template and submit the job again; `trainyard lint` finds such errors in advance."}
	case f == nil:
		return nil
	case f.Reason == "OOMKilled":
		return []string{"Raise the memory limit, or make the training use less, for example by smaller batches."}
	case f.Class == job.Disruption:
		return []string{"With restartPolicy OnFailure or ExitCode the job restarts after a disruption, and no retry is charged."}
	}
	return []string{fmt.Sprintf("Its log, if it still exists: %s.", s.Command("logs", "--replica", fmt.Sprintf("%s-%d", strings.ToLower(f.Role), f.Index)))}
}
