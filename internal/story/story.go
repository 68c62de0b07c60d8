// Package story tells a job's life in words for people, from what the API server knows of it: one line while it runs, a
// summary at its end, a paragraph on why it is as it is. It only reads; what it says of one moment is always the same.
package story

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
)

// Story is a job at a moment, with the facts that explain it.
type Story struct {
	Job     job.Job
	Status  job.Status
	Created time.Time
	Now     time.Time
	// Pods are those the job has now; Warnings are what Kubernetes warned of about them, the newest last.
	Pods     []corev1.Pod
	Warnings []string
}

// State is the job's state in one word.
func (s Story) State() string {
	if n := len(s.Status.Conditions); n > 0 {
		if state := s.Status.Conditions[n-1].Type; state != job.Created {
			return string(state)
		}
		return "Starting"
	}
	return "Submitted"
}

// since is when the present state began.
func (s Story) since() time.Time {
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
	return s.Status.Message
}

// EndReason is why the job's last attempt ended, empty while it runs.
func (s Story) EndReason() string {
	if n := len(s.Status.Attempts); n > 0 && s.Status.Finished() {
		return s.Status.Attempts[n-1].Reason
	}
	return ""
}

// Line is the job in one line: state, replicas, attempt, time gone and time left.
func (s Story) Line() string {
	parts := []string{strings.ToLower(s.State())}
	if s.Status.Ready != "" {
		parts = append(parts, s.Status.Ready+" ready")
	}
	if attempt := s.attempt(); attempt != "" {
		parts = append(parts, attempt)
	}
	if start := s.Status.StartTime; !start.IsZero() {
		parts = append(parts, Span(s.Now.Sub(start)))
		if deadline := s.Job.Policy.ActiveDeadlineSeconds; deadline != nil && !s.Status.Is(job.Suspended) {
			left := start.Add(time.Duration(*deadline) * time.Second).Sub(s.Now)
			parts = append(parts, Span(left)+" to the deadline")
		}
	}
	line := strings.Join(parts, " · ")
	if s.Status.Message != "" && !s.Status.Finished() {
		line += " · " + s.Status.Message
	}
	return line
}

// attempt is which try this is, of how many.
func (s Story) attempt() string {
	if limit := s.Job.Policy.BackoffLimit; limit != nil {
		return fmt.Sprintf("attempt %d of %d", s.Status.Retries+1, *limit+1)
	}
	if s.Status.Retries > 0 {
		return fmt.Sprintf("attempt %d", s.Status.Retries+1)
	}
	return ""
}

// Scaled says how the numbers of replicas have changed, nothing if they have not.
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

// Summary is how the job ended, in a few lines. First is the first failure that was seen, nil if there was none.
func (s Story) Summary(first *job.Failure) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s%s%s.\n", s.Job.Name, s.verdict(), s.length(), s.restarts())
	if ledger := s.Ledger(); len(s.Status.Attempts) > 1 {
		out.WriteString(ledger)
	}
	if first == nil {
		first = s.Status.LastFailure
	}
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

func (s Story) verdict() string {
	switch {
	case s.Status.Is(job.Succeeded):
		return "succeeded"
	case s.EndReason() == job.ReasonDeadlineExceeded:
		return "passed its deadline"
	case s.Status.Is(job.Failed):
		return "failed"
	}
	return "is " + strings.ToLower(s.State())
}

func (s Story) length() string {
	if s.Status.StartTime.IsZero() || s.Status.CompletionTime.IsZero() {
		return ""
	}
	return " after " + Span(s.Status.CompletionTime.Sub(s.Status.StartTime))
}

// restarts says how often the job had to begin anew, nothing if it had not.
func (s Story) restarts() string {
	var parts []string
	if n := s.Status.Attempt; n > 0 {
		parts = append(parts, fmt.Sprintf("%d attempts", n+1))
	}
	if n := s.Status.Retries; n > 0 {
		parts = append(parts, Count(int(n), "retry", "retries"))
	}
	if n := s.Status.Disruptions; n > 0 {
		parts = append(parts, Count(int(n), "disruption", "disruptions"))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", with " + strings.Join(parts, ", ")
}

// cause is why the job failed, without the words that every such sentence begins with.
func (s Story) cause() string {
	for _, c := range s.Status.Conditions {
		if c.Type == job.Failed {
			text := strings.TrimPrefix(c.Message, fmt.Sprintf("%s %s failed: ", s.Job.Kind, s.Job.Name))
			if f := s.Status.LastFailure; f != nil && f.Message != "" {
				text, _, _ = strings.Cut(text, ": "+firstWords(f.Message))
			}
			return strings.TrimSuffix(text, ".")
		}
	}
	return ""
}

func firstWords(text string) string { return text[:min(len(text), 20)] }

// Ledger is the attempts, a line each.
func (s Story) Ledger() string {
	var out strings.Builder
	for _, a := range s.Status.Attempts {
		length, why := "", "runs"
		if !a.End.IsZero() {
			length = Span(a.End.Sub(a.Start))
			why = strings.TrimPrefix(strings.TrimPrefix(a.Message, "is "), "failed: ")
		}
		if why == "" {
			why = strings.ToLower(a.Reason)
		}
		why, _, _ = strings.Cut(why, "\n")
		fmt.Fprintf(&out, "  attempt %-3d %6s  %s\n", a.Number+1, length, why)
	}
	return out.String()
}

func indent(text, prefix string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		out.WriteString(prefix + line + "\n")
	}
	return out.String()
}

// Count is a number of things: 1 retry, 2 retries.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
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
