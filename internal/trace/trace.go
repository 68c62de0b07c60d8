// Package trace tells a job's life as spans: the job, its attempts, and what each replica did in them. It is a pure function of the record,
// and the identifiers are hashes of what a span is about. So a trace can be sent at any time and by anybody, and sent twice it is the same.
//
//	job → queued → attempt 1 → worker-0: scheduling, starting, training → restart → attempt 2 → …
package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
	"github.com/trainyard/trainyard/internal/record"
)

// maxReplicas is how many replicas of an attempt have spans. Of a larger attempt only those that failed have, and the slowest ones.
const (
	maxReplicas = 64
	slowest     = 8
)

// Span is something that took time. Identifiers are in hexadecimal.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Start, End        time.Time
	// Attributes are pairs of a name and a value, in a fixed order.
	Attributes [][2]string
	// Failure is why it failed, empty if it did not.
	Failure string
}

// life is a record with the identifiers of its trace.
type life struct {
	*record.Record
	trace traceid.Trace
	spans []Span
}

// Spans are those of a record that have ended, parents before their children.
func Spans(r *record.Record) []Span {
	var object struct {
		Metadata struct{ Annotations map[string]string }
	}
	_ = json.Unmarshal(r.Object, &object) // without annotations the job has a trace of its own
	l := &life{Record: r, trace: traceid.Of(r.Summary.UID, object.Metadata.Annotations)}
	l.job()
	return l.spans
}

// add adds a span if it has begun and ended. Every span says which job it is about, because the span of the job itself comes last to a
// server that gets them while the job runs.
func (l *life) add(parent, id, name string, start, end time.Time, failure string, attributes ...[2]string) {
	if start.IsZero() || end.IsZero() {
		return
	}
	s := l.Summary
	about := [][2]string{{"trainyard.job.name", s.Name}, {"trainyard.job.namespace", s.Namespace}, {"trainyard.job.uid", string(s.UID)}, {"trainyard.job.kind", s.Kind}}
	if end.Before(start) {
		end = start // stored times are whole seconds
	}
	l.spans = append(l.spans, Span{Trace: l.trace.ID, ID: id, Parent: parent, Name: name, Start: start, End: end, Attributes: append(about, attributes...), Failure: failure})
}

func (l *life) job() {
	s, root := l.Summary, l.trace.Job()
	failure := ""
	if s.State == string(job.Failed) {
		failure = cmp.Or(s.Message, "the job failed")
	}
	end := s.Ended
	if end.IsZero() && !s.Unseen { // else nobody knows when it was deleted
		end = s.Deleted
	}
	l.add(l.trace.Parent, root, "job "+s.Name, s.Created, end, failure, [2]string{"trainyard.job.outcome", s.Outcome(true)},
		[2]string{"trainyard.job.retries", strconv.Itoa(int(s.Retries))}, [2]string{"trainyard.job.disruptions", strconv.Itoa(int(s.Disruptions))})
	for i, a := range l.Attempts {
		number := strconv.Itoa(int(a.Number) + 1)
		switch {
		case i == 0:
			l.add(root, l.trace.Span("queued"), "queued", s.Created, a.Start, "")
		default:
			before := l.Attempts[i-1]
			l.add(root, l.trace.Span("restart", number), "restart", before.End, a.Start, "", [2]string{"trainyard.attempt", number}, [2]string{"trainyard.reason", before.Reason})
		}
		failure := ""
		if !slices.Contains([]string{"", job.ReasonSucceeded, job.ReasonScaled, job.ReasonSuspended}, a.Reason) {
			failure = cmp.Or(a.Message, a.Reason)
		}
		l.add(root, l.trace.Attempt(a.Number), "attempt "+number, a.Start, a.End, failure, [2]string{"trainyard.attempt", number})
		l.replicas(a.Number)
	}
}

// phases are the moments of a pod.
type phases struct {
	pod                                  *corev1.Pod
	replica                              string
	created, scheduled, started, stopped time.Time
	failure                              string
}

// replicas adds the spans of the replicas of an attempt. A replica whose pod was replaced has one span, and the phases of all its pods are
// below it: what its processes trace is below it too, and they cannot know which pod of the replica they are.
func (l *life) replicas(attempt int32) {
	var all []phases
	for i := range l.Pods {
		if l.Pods[i].Pod.Labels[naming.LabelAttempt] == strconv.Itoa(int(attempt)) {
			all = append(all, phasesOf(&l.Pods[i]))
		}
	}
	var names []string
	pods := map[string][]phases{}
	for _, p := range chosen(all) {
		if pods[p.replica] == nil {
			names = append(names, p.replica)
		}
		pods[p.replica] = append(pods[p.replica], p)
	}
	for _, name := range names {
		l.replica(attempt, pods[name])
	}
}

// replica adds the spans of one replica with its pods, in the order of their creation.
func (l *life) replica(attempt int32, pods []phases) {
	last := pods[len(pods)-1]
	id := l.trace.Replica(attempt, last.replica)
	about := func(p phases) [][2]string {
		return [][2]string{{"trainyard.attempt", strconv.Itoa(int(attempt) + 1)}, {"trainyard.replica", p.replica}, {"k8s.pod.name", p.pod.Name}, {"k8s.node.name", p.pod.Spec.NodeName}}
	}
	l.add(l.trace.Attempt(attempt), id, last.replica, pods[0].created, last.stopped, last.failure, about(last)...)
	for _, p := range pods {
		phase := func(name string) string { return l.trace.Span("pod", string(p.pod.UID), name) }
		l.add(id, phase("scheduling"), "scheduling", p.created, p.scheduled, "", about(p)...)
		l.add(id, phase("starting"), "starting", p.scheduled, p.started, "", about(p)...)
		if !p.started.IsZero() {
			l.add(id, phase("training"), "training", p.started, p.stopped, p.failure, about(p)...)
		}
	}
}

// phasesOf reads the moments of a pod from its status: the container that started last is the one that trains.
func phasesOf(p *record.Pod) phases {
	pod := &p.Pod
	out := phases{pod: pod, replica: manifest.ReplicaName(pod), created: pod.CreationTimestamp.Time, stopped: p.Gone}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			out.scheduled = c.LastTransitionTime.Time
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil && c.State.Running.StartedAt.After(out.started) {
			out.started = c.State.Running.StartedAt.Time
		}
		if end := c.State.Terminated; end != nil && !end.StartedAt.Time.Before(out.started) {
			out.started, out.stopped = end.StartedAt.Time, end.FinishedAt.Time
			if end.ExitCode != 0 && !p.Stopped(end) {
				out.failure = fmt.Sprintf("exited with code %d", end.ExitCode)
			}
		}
	}
	return out
}

// chosen are the replicas of an attempt that have spans, in the order of their creation.
func chosen(all []phases) []phases {
	if len(all) <= maxReplicas {
		return all
	}
	slow := slices.Clone(all)
	slices.SortStableFunc(slow, func(a, b phases) int { return cmp.Compare(b.started.Sub(b.created), a.started.Sub(a.created)) })
	keep := map[*corev1.Pod]bool{}
	for _, p := range slow[:slowest] {
		keep[p.pod] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(p phases) bool { return !keep[p.pod] && p.failure == "" })
}
