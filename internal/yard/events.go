package yard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/job"
)

// Event is something that Kubernetes or the operator noted about a job or one of its pods.
type Event struct {
	Time       time.Time `json:"time"`
	Kind, Name string
	Type       string `json:"type"`
	Reason     string `json:"reason"`
	Text       string `json:"text"`

	stored uint64
}

// Events are those of a job, its pods and its other children, oldest first.
func (y *Yard) Events(ctx context.Context, j *Job) ([]Event, error) {
	list, err := y.Core.CoreV1().Events(j.Job.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the events of %s: %w", j.Job.Name, err)
	}
	var all []Event
	for i := range list.Items {
		e := &list.Items[i]
		if !about(e, j) {
			continue
		}
		stored, _ := strconv.ParseUint(e.ResourceVersion, 10, 64)
		all = append(all, Event{stored: stored, Time: when(e), Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Type: e.Type, Reason: e.Reason, Text: e.Message})
	}
	all = append(all, beginning(j, all)...)
	// Some recorders keep whole seconds, others parts of them: within a second the order in which they were stored counts.
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(a.Time.Truncate(time.Second).Compare(b.Time.Truncate(time.Second)), cmp.Compare(a.stored, b.stored))
	})
	return all, nil
}

// beginning is what only the conditions tell: that the job was created, and runs for the first time.
func beginning(j *Job, told []Event) []Event {
	var all []Event
	for _, c := range j.Status.Conditions {
		known := slices.ContainsFunc(told, func(e Event) bool { return e.Reason == c.Reason && e.Kind == j.Kind.Name() })
		if c.Status && !known && (c.Type == job.Created || c.Type == job.Running) {
			all = append(all, Event{Time: c.LastTransition, Kind: j.Kind.Name(), Name: j.Job.Name, Type: corev1.EventTypeNormal, Reason: c.Reason, Text: c.Message})
		}
	}
	return all
}

// about tells whether an event is of this very job, or of a pod with its name that is not older than it.
func about(e *corev1.Event, j *Job) bool {
	of := e.InvolvedObject
	if of.UID == j.Job.UID {
		return true
	}
	rest, ours := strings.CutPrefix(of.Name, j.Job.Name+"-")
	if of.Kind != "Pod" || !ours || when(e).Before(j.Object.GetCreationTimestamp().Time) {
		return false
	}
	for _, role := range j.Job.Roles {
		if index, ok := strings.CutPrefix(rest, strings.ToLower(role.Name)+"-"); ok && strings.Trim(index, "0123456789") == "" {
			return true
		}
	}
	return false
}

// when is the time of an event: the old way of recording has whole seconds, the new one parts of them.
func when(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.EventTime.Time, e.LastTimestamp.Time, e.FirstTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}
