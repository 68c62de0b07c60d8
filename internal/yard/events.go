package yard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/record"
)

// Event is something that Kubernetes or the operator recorded about a job or one of its pods.
type Event struct {
	Time       time.Time
	Kind, Name string
	UID        types.UID
	Type       string
	Reason     string
	Text       string
	// Times is how often it had been recorded by then, First when it was recorded first.
	Times int32
	First time.Time

	stored uint64
}

// Events are those of a job, its pods and its autoscaler, oldest first.
func (y *Yard) Events(ctx context.Context, j *Job) ([]Event, error) {
	if j.Recorded != nil {
		return timeline(j, addRecorded(nil, j.Recorded)), nil
	}
	list, err := y.Core.CoreV1().Events(j.Job.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the events of %s: %w", j.Job.Name, err)
	}
	all := list.Items
	if y.Past != nil {
		r, err := y.Past.Load(j.Job.Namespace, j.Job.UID)
		if err != nil && !errors.Is(err, record.ErrNone) { // there may be none yet
			return nil, err
		}
		all = addRecorded(all, r)
	}
	return timeline(j, all), nil
}

// timeline is what is known to have happened to a job, oldest first.
func timeline(j *Job, recorded []corev1.Event) []Event {
	var all []Event
	for i := range recorded {
		if e := &recorded[i]; about(e, j) {
			all = append(all, read(e)...)
		}
	}
	all = append(all, beginning(j, all)...)
	order(all)
	return all
}

// read is an event, or two: of one that was recorded several times only the first and the last time are known.
func read(e *corev1.Event) []Event {
	stored, _ := strconv.ParseUint(e.ResourceVersion, 10, 64)
	event := Event{stored: stored, Time: when(e), Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, UID: e.InvolvedObject.UID, Type: e.Type, Reason: e.Reason, Text: e.Message, Times: 1}
	event.First = event.Time
	switch {
	case e.Series != nil:
		event.Times, event.Time = e.Series.Count, e.Series.LastObservedTime.Time
	case e.Count > 1:
		event.Times, event.First = e.Count, e.FirstTimestamp.Time
	default:
		return []Event{event}
	}
	first := event
	first.Time, first.Times, first.stored = event.First, 1, math.MaxUint64 // when it was stored first is not known
	return []Event{first, event}
}

// order sorts events by their time. Some recorders keep whole seconds, others fractions. Within a second the order of storing
// counts. Only events with fractions are sorted by them among themselves, because several writers may store them at once.
func order(all []Event) {
	second := func(e Event) time.Time { return e.Time.Truncate(time.Second) }
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(second(a).Compare(second(b)), cmp.Compare(a.stored, b.stored))
	})
	var places []int
	var exact []Event
	for i, e := range all {
		if !e.Time.Equal(second(e)) {
			places, exact = append(places, i), append(exact, e)
		}
	}
	slices.SortStableFunc(exact, func(a, b Event) int { return a.Time.Compare(b.Time) })
	for i, place := range places {
		all[place] = exact[i]
	}
}

// beginning is what has no event: that the job was created, and that it runs for the first time. The time of the condition Created
// does not count, because the operator renews it. Running becomes True after everything that it needs has started.
func beginning(j *Job, recorded []Event) []Event {
	var all []Event
	for _, c := range j.Status.Conditions {
		hasEvent := slices.ContainsFunc(recorded, func(e Event) bool { return e.Reason == c.Reason && e.Kind == j.Kind.Name() })
		if !c.Status || hasEvent {
			continue
		}
		e := Event{Kind: j.Kind.Name(), Name: j.Job.Name, Type: corev1.EventTypeNormal, Reason: c.Reason, Text: c.Message, Times: 1}
		switch c.Type {
		case job.Created:
			e.Time, e.stored = j.Object.GetCreationTimestamp().Time, 0
		case job.Running:
			e.Time, e.stored = c.LastTransition, math.MaxUint64
		default:
			continue
		}
		e.First = e.Time
		all = append(all, e)
	}
	return all
}

// about reports whether an event is about exactly this job, or about a child with its name that is not older than the job.
func about(e *corev1.Event, j *Job) bool {
	of := e.InvolvedObject
	if of.UID == j.Job.UID {
		return true
	}
	rest, ours := strings.CutPrefix(of.Name, j.Job.Name+"-")
	switch {
	case when(e).Before(j.Object.GetCreationTimestamp().Time):
		return false
	case of.Kind == "HorizontalPodAutoscaler":
		return of.Name == j.Job.Name && slices.ContainsFunc(j.Job.Children, func(c job.Child) bool { return c.ChildKind == job.Autoscalers })
	case of.Kind != "Pod" || !ours:
		return false
	}
	for _, role := range j.Job.Roles {
		if index, ok := strings.CutPrefix(rest, strings.ToLower(role.Name)+"-"); ok && strings.Trim(index, "0123456789") == "" {
			return true
		}
	}
	return false
}

// when is the time of an event. Events of the old API have whole seconds, those of the new one fractions.
func when(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.EventTime.Time, e.LastTimestamp.Time, e.FirstTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}
