package simulation

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/text"
)

// Life is what happened to a job from its creation to its end.
type Life struct {
	Moments []Moment `json:"moments"`
	Runs    []Run    `json:"runs"`
	Verdict string   `json:"verdict"`
	// Message is why, or what the job is doing when the simulation ends.
	Message     string        `json:"message"`
	Length      time.Duration `json:"length"`
	Attempts    int32         `json:"attempts"`
	Retries     int32         `json:"retries"`
	Disruptions int32         `json:"disruptions"`
}

// Moment is something that happened at a time.
type Moment struct {
	At   time.Duration `json:"at"`
	Kind Kind          `json:"kind"`
	Text string        `json:"text"`
}

// Kind says what caused a moment.
type Kind string

// The kinds of moments.
const (
	// FromScript: it was in the script, or the training exited.
	FromScript Kind = "script"
	// FromOperator: the operator reports it as an event.
	FromOperator Kind = "told"
	// Done: the operator did it to the pods or the job.
	Done Kind = "done"
)

// Run is one run of a replica's training.
type Run struct {
	Replica string        `json:"replica"`
	Attempt int32         `json:"attempt"`
	Start   time.Duration `json:"start"`
	End     time.Duration `json:"end"`
	// Code is how it exited; -1 for one that was stopped or still runs.
	Code int32 `json:"code"`
}

// In JSON, times are in seconds, and attempts count from 1.

// MarshalJSON writes a life.
func (l *Life) MarshalJSON() ([]byte, error) {
	type life Life
	return json.Marshal(struct {
		life
		Length float64 `json:"length"`
	}{life(*l), l.Length.Seconds()})
}

// MarshalJSON writes a moment.
func (m Moment) MarshalJSON() ([]byte, error) {
	type moment Moment
	return json.Marshal(struct {
		At float64 `json:"at"`
		moment
	}{m.At.Seconds(), moment(m)})
}

// MarshalJSON writes a run.
func (r Run) MarshalJSON() ([]byte, error) {
	type run Run
	return json.Marshal(struct {
		run
		Attempt int32   `json:"attempt"`
		Start   float64 `json:"start"`
		End     float64 `json:"end"`
	}{run(r), r.Attempt + 1, r.Start.Seconds(), r.End.Seconds()})
}

// conclude fills in how the job ended, or that it did not.
func (l *Life) conclude(s job.Status, gone bool) {
	l.Attempts, l.Retries, l.Disruptions = s.Attempt+1, s.Retries, s.Disruptions
	switch {
	case s.Is(job.Succeeded):
		l.Verdict = "Succeeded"
	case s.Is(job.Failed):
		l.Verdict = "Failed"
	case s.Is(job.Suspended):
		l.Verdict = "Suspended"
	default:
		l.Verdict = "Unfinished"
	}
	if s.Finished() {
		l.Length = s.CompletionTime.Sub(epoch)
		l.Message = s.Attempts[len(s.Attempts)-1].Message
	} else {
		l.Message = s.Message
	}
	if gone {
		l.Message += "; the job was deleted by its TTL"
	}
}

// String is the life as text.
func (l *Life) String() string {
	var out strings.Builder
	last := time.Duration(-1)
	for _, m := range l.Moments {
		at := ""
		if m.At != last {
			at, last = short(m.At), m.At
		}
		mark := map[Kind]string{FromScript: "! ", FromOperator: "", Done: "  "}[m.Kind]
		fmt.Fprintf(&out, "%9s  %s%s\n", at, mark, m.Text)
	}
	fmt.Fprintf(&out, "\n%s\n", l.summary())
	return out.String()
}

func (l *Life) summary() string {
	counts := fmt.Sprintf("%s, %s, %s", text.Count(l.Attempts, "attempt", "attempts"), text.Count(l.Retries, "retry", "retries"), text.Count(l.Disruptions, "disruption", "disruptions"))
	switch l.Verdict {
	case "Succeeded", "Failed":
		return fmt.Sprintf("%s after %s: %s.", l.Verdict, short(l.Length), counts)
	case "Suspended":
		return fmt.Sprintf("Suspended, and nothing will resume it: %s.", counts)
	default:
		return fmt.Sprintf("Not finished after %s: %s.", short(l.Length), counts)
	}
}

// short is a duration without its zeros: 1h, not 1h0m0s.
func short(d time.Duration) string {
	words := d.String()
	if strings.HasSuffix(words, "m0s") {
		words = strings.TrimSuffix(words, "0s")
	}
	if strings.HasSuffix(words, "h0m") {
		words = strings.TrimSuffix(words, "0m")
	}
	return words
}
