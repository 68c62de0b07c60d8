// Package story describes a job's life for people, from what the API server knows of it: one line while it runs, a summary at its end,
// a paragraph on why it is in its state. It only reads, and its text depends on nothing but the Story.
//
// An attempt is a run of the gang, and people count from 1. Retries are what the backoff limit counts. If a job restarts as a whole,
// each retry is another attempt; if it restarts single replicas, retries happen within one attempt. Suspensions and disruptions start
// another attempt and are not charged as retries.
package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/text"
)

// Story is a job at one moment, with the facts that explain its state.
type Story struct {
	Job     job.Job
	Status  job.Status
	Created time.Time
	Now     time.Time
	// TargetFlags are the flags of a command about the job: those for its cluster and namespace.
	TargetFlags []string
	// Pods are the job's present pods; Warnings are Kubernetes' warnings about them, the newest last.
	Pods     []corev1.Pod
	Warnings []string
	// Kueue says what the job waits for while Kueue holds it: "waits for Kueue: …". It is empty if Kueue does not.
	Kueue string
}

// Command is a command about the job that a person can type: `trainyard logs JOB -f`.
func (s Story) Command(verb string, flags ...string) string {
	words := slices.Concat([]string{"trainyard", verb, s.Job.Name}, flags, s.TargetFlags)
	return "`" + strings.Join(words, " ") + "`"
}

// State is the job's state in one word.
func (s Story) State() string {
	if s.Job.Deleting {
		return "Deleting"
	}
	if n := len(s.Status.Conditions); n > 0 {
		if state := s.Status.Conditions[n-1].Type; state != job.Created {
			return string(state)
		}
		return "Starting"
	}
	return "Submitted"
}

// Since is when the present state began.
func (s Story) Since() time.Time {
	if n := len(s.Status.Conditions); n > 0 {
		return s.Status.Conditions[n-1].LastTransition
	}
	return s.Created
}

// Message is what the job waits for or why it failed, without its name.
func (s Story) Message() string {
	if s.Status.Is(job.Failed) {
		return s.cause()
	}
	return cmp.Or(s.Kueue, s.Status.Message)
}

// EndReason is why the job's last attempt ended, empty while it runs.
func (s Story) EndReason() string {
	if n := len(s.Status.Attempts); n > 0 && s.Status.Finished() {
		return s.Status.Attempts[n-1].Reason
	}
	return ""
}

// Line is the job in one line: state, replicas, attempt, elapsed time and time left.
func (s Story) Line() string {
	parts := []string{strings.ToLower(s.State())}
	if s.Status.Ready != "" {
		parts = append(parts, s.Status.Ready+" ready")
	}
	if len(s.Status.Attempts) > 0 {
		parts = append(parts, s.progress()...)
	}
	if start := s.Status.StartTime; !start.IsZero() {
		parts = append(parts, Span(s.Now.Sub(start)))
		if deadline := s.Job.Policy.ActiveDeadlineSeconds; deadline != nil && !s.Status.Is(job.Suspended) {
			left := start.Add(job.Seconds(*deadline)).Sub(s.Now)
			parts = append(parts, Span(left)+" to the deadline")
		}
	}
	line := strings.Join(parts, " · ")
	if s.Status.Message != "" && !s.Status.Finished() {
		line += " · " + s.Status.Message
	}
	return line
}

// Attempt is the number of the present or last attempt.
func (s Story) Attempt() int32 { return s.Status.Attempt + 1 }

// Retries is the number of retries and the limit, if there is one: 1/3.
func (s Story) Retries() string {
	if limit := s.Job.Policy.BackoffLimit; limit != nil {
		return fmt.Sprintf("%d/%d", s.Status.Retries, *limit)
	}
	return fmt.Sprint(s.Status.Retries)
}

// progress says which attempt this is, of how many there can be: one more for each retry that is left. A job that restarts single
// replicas has retries within an attempt.
func (s Story) progress() []string {
	attempt := fmt.Sprintf("attempt %d", s.Attempt())
	switch limit, retries := s.Job.Policy.BackoffLimit, s.Status.Retries; {
	case limit != nil && *limit > 0 && s.Job.RestartScope() == job.ScopeJob:
		return []string{fmt.Sprintf("%s of %d", attempt, s.Attempt()+max(*limit-retries, 0))}
	case limit != nil && *limit > 0:
		return []string{attempt, fmt.Sprintf("%d of %s", retries, text.Count(*limit, "retry", "retries"))}
	case retries > 0:
		return []string{attempt, text.Count(retries, "retry", "retries")}
	}
	return []string{attempt}
}

// Scaled says how the numbers of replicas have changed. It is empty if they have not.
func Scaled(was, is job.Status) string {
	var changes []string
	for _, role := range is.Roles {
		for _, before := range was.Roles {
			if before.Role == role.Role && before.Size != role.Size {
				changes = append(changes, fmt.Sprintf("%s from %d to %d", role.Role, before.Size, role.Size))
			}
		}
	}
	return strings.Join(changes, ", ")
}

// Outcome is how the job ended, or its state, in one sentence.
func (s Story) Outcome() string {
	if !s.Status.Finished() {
		return fmt.Sprintf("%s %s.", s.Job.Name, s.verdict())
	}
	return fmt.Sprintf("%s %s%s%s.", s.Job.Name, s.verdict(), s.length(), s.restarts())
}

// Summary is how the job ended, in a few lines. First is the first failure that was seen, nil if none was.
func (s Story) Summary(first *job.Failure) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", s.Outcome())
	if ledger := s.Ledger(); len(s.Status.Attempts) > 1 {
		out.WriteString(ledger)
	}
	first = s.First(first)
	switch {
	case s.Status.Is(job.Failed) && (first == nil || len(s.Status.Attempts) < 2):
		fmt.Fprintf(&out, "  %s\n", s.cause())
	case first != nil:
		fmt.Fprintf(&out, "  The first failure: %s\n", first)
	}
	if first != nil && first.Message != "" {
		fmt.Fprintf(&out, "  It last said:\n%s", indent(first.Message, "    | "))
	}
	return out.String()
}

// First is the first failure if it was seen, else the last one, which the status keeps.
func (s Story) First(seen *job.Failure) *job.Failure {
	if seen == nil {
		return s.Status.LastFailure
	}
	return seen
}

func (s Story) verdict() string {
	switch {
	case s.Status.Is(job.Succeeded):
		return "succeeded"
	case s.EndReason() == job.ReasonDeadlineExceeded:
		if deadline := s.Job.Policy.ActiveDeadlineSeconds; deadline != nil {
			return "passed its deadline of " + Span(job.Seconds(*deadline))
		}
		return "passed its deadline"
	case s.Status.Is(job.Failed):
		return "failed"
	}
	return "is " + strings.ToLower(s.State())
}

// length says how long the job took. It is empty for a job that passed its deadline: the deadline says it, and stored times are rounded.
func (s Story) length() string {
	if s.Status.StartTime.IsZero() || s.Status.CompletionTime.IsZero() || s.EndReason() == job.ReasonDeadlineExceeded {
		return ""
	}
	return " after " + Span(s.Status.CompletionTime.Sub(s.Status.StartTime))
}

// restarts says how often the job was restarted. It is empty if it was not.
func (s Story) restarts() string {
	var parts []string
	if n := s.Status.Attempt; n > 0 {
		parts = append(parts, fmt.Sprintf("%d attempts", s.Attempt()))
	}
	if n := s.Status.Retries; n > 0 {
		parts = append(parts, text.Count(n, "retry", "retries"))
	}
	if n := s.Status.Disruptions; n > 0 {
		parts = append(parts, text.Count(n, "disruption", "disruptions"))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", with " + strings.Join(parts, ", ")
}

// cause is why the job failed, without the common beginning of such sentences and without the replica's last lines. It comes from
// the list of attempts. A job of another operator may only have the condition.
func (s Story) cause() string {
	text := ""
	if n := len(s.Status.Attempts); n > 0 {
		text = strings.TrimPrefix(s.Status.Attempts[n-1].Message, "failed: ")
	}
	for _, c := range s.Status.Conditions {
		if c.Type == job.Failed && text == "" {
			text = strings.TrimPrefix(c.Message, fmt.Sprintf("%s %s failed: ", s.Job.Kind, s.Job.Name))
		}
	}
	return strings.TrimRight(firstLine(text), ". ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Ledger lists the attempts, one per line.
func (s Story) Ledger() string {
	var out strings.Builder
	for _, a := range s.Status.Attempts {
		length, why := "", s.present()
		if !a.End.IsZero() {
			length = Span(a.End.Sub(a.Start))
			why = strings.TrimPrefix(strings.TrimPrefix(a.Message, "is "), "failed: ")
		}
		if why == "" {
			why = strings.ToLower(a.Reason)
		}
		fmt.Fprintf(&out, "  attempt %-3d %6s  %s\n", a.Number+1, length, firstLine(why))
	}
	return out.String()
}

// present is what the present attempt does.
func (s Story) present() string {
	switch {
	case s.Status.Is(job.Running):
		return "runs"
	case s.Status.Message != "" || s.Status.NotBefore.After(s.Now):
		return "waits"
	}
	return "starts"
}

func indent(text, prefix string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		out.WriteString(prefix + line + "\n")
	}
	return out.String()
}

// Span is a length of time in at most two units: 45s, 3m20s, 2h5m, 4d3h.
func Span(d time.Duration) string {
	d = max(d.Round(time.Second), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < 48*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "m")
	default:
		return units(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	if rest := d % large / small; rest > 0 {
		return fmt.Sprintf("%d%s%d%s", d/large, largeName, rest, smallName)
	}
	return fmt.Sprintf("%d%s", d/large, largeName)
}
