package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/job"
)

// Script is what happens to a job, one sentence for each event.
type Script []Event

// Event is one thing that happens.
type Event struct {
	// Who is a replica as in worker-1, a role, "job" or "operator".
	Who  string
	What What
	// Number is the exit code, or the number of replicas.
	Number int32
	// At is when it happens, from the job's creation. With Each it is how long the replica has run, in every run again.
	At   time.Duration
	Each bool
	// Until is when it is over, for an operator that is down.
	Until time.Duration
}

// What is a kind of event.
type What string

// The kinds of events.
const (
	Exits   What = "exits"
	OOM     What = "runs out of memory"
	Evicted What = "is evicted"
	Deleted What = "is deleted"
	Scales  What = "scales to"
	Suspend What = "is suspended"
	Resume  What = "is resumed"
	Down    What = "is down"
)

// Grammar lists the sentences of a script, for the help.
const Grammar = `  worker-1 exits 137 at 30s          once, 30 s after the job was created
  worker-1 exits 1 after 10s         each time it has run for 10 s
  worker-1 runs out of memory at 1m
  worker-1 is evicted at 1m
  worker-1 is deleted at 1m
  worker scales to 4 at 5m
  job is suspended at 1m
  job is resumed at 2m
  operator is down from 10s to 40s`

// ParseScript reads a script: one sentence a line. Empty lines, and what follows a #, are ignored.
func ParseScript(text string) (Script, error) {
	var script Script
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		h, err := ParseEvent(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		script = append(script, h)
	}
	return script, nil
}

// ParseEvent reads one sentence.
func ParseEvent(sentence string) (Event, error) {
	words := strings.Fields(sentence)
	wrong := func(why string) (Event, error) {
		return Event{}, fmt.Errorf("%q: %s; write it like %q", strings.Join(strings.Fields(sentence), " "), why, "worker-1 exits 137 at 30s")
	}
	if len(words) < 3 {
		return wrong("it is too short")
	}
	h := Event{Who: strings.ToLower(words[0])}
	rest := strings.Join(words[1:], " ")
	for _, what := range []What{Exits, OOM, Evicted, Deleted, Scales, Suspend, Resume, Down} {
		if after, ok := strings.CutPrefix(rest, string(what)+" "); ok {
			h.What, words = what, strings.Fields(after)
		}
	}
	if h.What == "" {
		return wrong("this event is unknown")
	}
	if h.What == Exits || h.What == Scales {
		n, err := strconv.ParseInt(words[0], 10, 32)
		switch {
		case h.What == Exits && (err != nil || n < 0 || n > 255):
			return wrong("an exit code is a number from 0 to 255")
		case err != nil || n < 0:
			return wrong("the number of replicas must be 0 or more")
		}
		h.Number, words = int32(n), words[1:]
	}
	if err := h.parseTime(words); err != nil {
		return wrong(err.Error())
	}
	return h, h.checkTarget()
}

// parseTime reads the time at the end of a sentence.
func (h *Event) parseTime(words []string) (err error) {
	switch {
	case h.What == Down && len(words) == 4 && words[0] == "from" && words[2] == "to":
		if h.At, err = moment(words[1]); err == nil {
			h.Until, err = moment(words[3])
		}
		if err == nil && h.Until <= h.At {
			err = errors.New("the second time must be later")
		}
		return err
	case len(words) == 2 && words[0] == "at" && h.What != Down:
		h.At, err = moment(words[1])
		return err
	case len(words) == 2 && words[0] == "after" && (h.What == Exits || h.What == OOM):
		h.Each = true
		h.At, err = moment(words[1])
		return err
	}
	return errors.New("the time is missing or wrong")
}

func moment(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is not a duration", word)
	}
	return d, nil
}

// checkTarget checks that this can happen to the replica, role, job or operator that the sentence names.
func (h *Event) checkTarget() error {
	want := "a replica such as worker-1"
	_, _, isReplica := strings.Cut(h.Who, "-")
	fits := isReplica
	switch h.What {
	case Suspend, Resume:
		want, fits = "the job", h.Who == "job"
	case Down:
		want, fits = "the operator", h.Who == "operator"
	case Scales:
		want, fits = "a role such as worker", !isReplica && h.Who != "job" && h.Who != "operator"
	}
	if !fits {
		return fmt.Errorf("%q %s: only %s can", h.Who, h.What, want)
	}
	return nil
}

// Check checks that the job has every replica and role that the script names, and is suspended when the script resumes it.
func (s Script) Check(j job.Job) error {
	suspended := j.Policy.Suspend
	for _, h := range slices.SortedStableFunc(slices.Values(s), func(a, b Event) int { return cmp.Compare(a.At, b.At) }) {
		switch h.What {
		case Suspend:
			suspended = true
		case Resume:
			if !suspended {
				return fmt.Errorf("job is resumed at %s: it is not suspended then; suspend it before, or remove this", short(h.At))
			}
			suspended = false
		}
	}
	for _, h := range s {
		switch h.What {
		case Suspend, Resume, Down:
		case Scales:
			if !slices.Contains(roleNames(j), h.Who) {
				return fmt.Errorf("%s has no %s: its roles are %s", j.Name, h.Who, strings.Join(roleNames(j), ", "))
			}
			low, high := int32(0), int32(job.MaxReplicas)
			if e := j.Elastic; e != nil && strings.EqualFold(h.Who, e.Role) {
				low, high = e.Min, e.Max
			}
			if h.Number < low || h.Number > high {
				return fmt.Errorf("%s scales to %d: it can have %d to %d replicas", h.Who, h.Number, low, high)
			}
		default:
			if !s.hasReplica(j, h.Who) {
				return fmt.Errorf("%s has no %s: it has %s", j.Name, h.Who, replicaNames(j))
			}
		}
	}
	return nil
}

// hasReplica reports whether the job has a replica of that name, from the start or once it is scaled.
func (s Script) hasReplica(j job.Job, who string) bool {
	for _, role := range j.Roles {
		name, size := strings.ToLower(role.Name), j.Size(role)
		for _, h := range s {
			if h.What == Scales && h.Who == name {
				size = max(size, h.Number)
			}
		}
		index, ok := strings.CutPrefix(who, name+"-")
		if n, err := strconv.ParseInt(index, 10, 32); ok && err == nil && n >= 0 && int32(n) < size {
			return true
		}
	}
	return false
}

func roleNames(j job.Job) []string {
	var names []string
	for _, role := range j.Roles {
		names = append(names, strings.ToLower(role.Name))
	}
	return names
}

// replicaNames are the replicas a job starts with; if a role has many, the first and the last.
func replicaNames(j job.Job) string {
	var names []string
	for _, role := range j.Roles {
		name, size := strings.ToLower(role.Name), j.Size(role)
		switch {
		case size > 2:
			names = append(names, fmt.Sprintf("%s-0 to %[1]s-%d", name, size-1))
		default:
			for i := range size {
				names = append(names, fmt.Sprintf("%s-%d", name, i))
			}
		}
	}
	return strings.Join(names, ", ")
}
