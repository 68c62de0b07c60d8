package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Pace is how long things take.
type Pace struct {
	// Starts is the time from a pod's creation to the start of its training, Stops the time from its deletion until it is gone.
	Starts, Stops time.Duration
	// Trains is how long a replica trains, from each start, before it exits 0.
	Trains time.Duration
	// Limit is when the simulation ends at the latest.
	Limit time.Duration
}

// epoch is when every job is created.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// maxMoments limits the simulation of a job that never ends.
const maxMoments = 20000

// world is a simulated cluster with one job.
type world struct {
	manifest *manifest.Manifest
	script   Script
	pace     Pace
	now      time.Time
	status   job.Status
	gone     bool
	down     bool

	pods     map[string]*corev1.Pod
	children map[string]job.Child // by kind and name
	uids     int

	agenda []entry
	wakeAt time.Time
	life   *Life
	runs   map[types.UID]int // the open run of each pod
}

// entry is something that will happen. Entries of the same time keep their order.
type entry struct {
	at time.Time
	do func()
}

// Simulate runs a job from its creation to its end.
func Simulate(m *manifest.Manifest, script Script, pace Pace) (*Life, error) {
	if err := script.Check(m.Job); err != nil {
		return nil, err
	}
	if m.Job.UID == "" {
		m.Job.UID = "simulated"
		m.Job.Children = m.Children()
	}
	w := &world{
		manifest: m, script: script, pace: pace, now: epoch, pods: map[string]*corev1.Pod{}, children: map[string]job.Child{},
		life: &Life{}, runs: map[types.UID]int{},
	}
	for _, h := range script {
		if !h.Each {
			w.at(epoch.Add(h.At), func() { w.apply(h) })
		}
		if h.What == Down {
			w.at(epoch.Add(h.Until), func() { w.down = false; w.record(FromScript, "operator is up again") })
		}
	}
	if err := w.run(); err != nil {
		return nil, err
	}
	for _, open := range w.runs {
		w.life.Runs[open].End = w.now.Sub(epoch)
	}
	w.life.Length = w.now.Sub(epoch)
	w.life.conclude(w.status, w.gone)
	return w.life, nil
}

// run goes from one event to the next until there are no more.
func (w *world) run() error {
	for range maxMoments {
		for len(w.agenda) > 0 && !w.agenda[0].at.After(w.now) {
			next := w.agenda[0]
			w.agenda = w.agenda[1:]
			next.do()
		}
		if !w.down {
			if err := w.reconcile(); err != nil {
				return err
			}
		}
		if len(w.agenda) > 0 && !w.agenda[0].at.After(w.now) {
			continue
		}
		next, any := w.next()
		if !any || w.gone {
			return nil
		}
		if limit := epoch.Add(w.pace.Limit); next.After(limit) {
			w.now = limit
			return nil
		}
		w.now = next
	}
	return nil
}

// next is the time of the next event, or of the operator's next pass.
func (w *world) next() (time.Time, bool) {
	var next time.Time
	if len(w.agenda) > 0 {
		next = w.agenda[0].at
	}
	if !w.down && !w.wakeAt.IsZero() && w.wakeAt.After(w.now) && (next.IsZero() || w.wakeAt.Before(next)) {
		next = w.wakeAt
	}
	return next, !next.IsZero()
}

func (w *world) at(t time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(w.agenda, t, func(e entry, t time.Time) int {
		if e.at.After(t) {
			return 1
		}
		return -1
	})
	w.agenda = slices.Insert(w.agenda, i, entry{t, do})
}

func (w *world) record(kind Kind, format string, args ...any) {
	w.life.Moments = append(w.life.Moments, Moment{w.now.Sub(epoch), kind, fmt.Sprintf(format, args...)})
}

// apply makes an event of the script happen.
func (w *world) apply(h Event) {
	switch h.What {
	case Down:
		w.record(FromScript, "operator is down")
		w.down = true
	case Suspend, Resume:
		w.record(FromScript, "%s %s", h.Who, h.What)
		w.manifest.Job.Policy.Suspend = h.What == Suspend
		w.manifest.Job.Generation++
	case Scales:
		w.record(FromScript, "%s scales to %d", h.Who, h.Number)
		w.manifest.Job.Generation++
		for i := range w.manifest.Job.Roles {
			if strings.EqualFold(w.manifest.Job.Roles[i].Name, h.Who) {
				w.manifest.Job.Roles[i].Replicas = h.Number
			}
		}
	default:
		w.applyToPod(w.pods[w.manifest.Job.Name+"-"+h.Who], h)
	}
}

// applyToPod makes an event of the script happen to a pod, if it can happen in the pod's state.
func (w *world) applyToPod(pod *corev1.Pod, h Event) {
	switch {
	case pod == nil:
		w.record(FromScript, "%s %s: it has no pod now", h.Who, h.What)
	case h.What == Deleted:
		w.record(FromScript, "%s %s", h.Who, h.What)
		w.deletePod(pod, false)
	case !running(pod):
		w.record(FromScript, "%s %s: it does not run now", h.Who, h.What)
	case h.What == Evicted:
		w.record(FromScript, "%s %s", h.Who, h.What)
		w.evict(pod)
	case h.What == OOM:
		w.record(FromScript, "%s %s", h.Who, h.What)
		w.exit(pod, 137, "OOMKilled")
	default:
		w.record(FromScript, "%s exits %d", h.Who, h.Number)
		w.exit(pod, h.Number, "Error")
	}
}

// reconcile runs passes of the operator until it has nothing to do at this time.
func (w *world) reconcile() error {
	for range 200 {
		if w.gone {
			return nil
		}
		d := w.decide()
		w.wakeAt = d.RequeueAt
		if idle := w.act(d); idle {
			return nil
		}
	}
	return errors.New("the operator never becomes idle")
}

func (w *world) decide() job.Decision {
	o := job.Observed{Now: w.now, Job: w.manifest.Job, Status: w.status, Live: true, Fresh: true}
	o.Pods = sorted(w.pods, (*corev1.Pod).DeepCopy)
	o.Children = sorted(w.children, func(c job.Child) job.Child { return c })
	d := job.Decide(o)
	for range 3 {
		if len(d.Ask.Nodes) == 0 && !d.Ask.Pods {
			return d
		}
		o.Nodes = map[string]job.NodeState{}
		for _, node := range d.Ask.Nodes {
			o.Nodes[node] = job.NodeAlive
		}
		d = job.Decide(o)
	}
	return d
}

// act does what was decided, and reports whether there was nothing to do.
func (w *world) act(d job.Decision) (idle bool) {
	w.status = d.Status
	for _, e := range d.Events {
		w.record(FromOperator, "%s", w.withoutName(e.Message))
	}
	if names := w.deletePods(d.DeletePods); len(names) > 0 {
		w.record(Done, "stops %s", strings.Join(names, ", "))
	}
	for _, child := range d.DeleteChildren {
		delete(w.children, child.Kind+" "+child.GetName())
	}
	for _, child := range d.CreateChildren {
		w.children[child.Kind+" "+child.GetName()] = child
	}
	if d.SizeJob {
		w.manifest.Job.Unsized = false
	}
	w.createPods(d)
	if d.DeleteJob {
		w.record(Done, "deletes the job: its TTL has passed")
		w.gone = true
	}
	return d.Write == job.WriteNothing && len(d.DeletePods)+len(d.DeleteChildren)+len(d.CreateChildren)+len(d.CreatePods) == 0 && !d.SizeJob
}

// withoutName is a message of the operator without the job's name.
func (w *world) withoutName(message string) string {
	message = strings.TrimPrefix(message, w.manifest.Job.Kind+" "+w.manifest.Job.Name+" ")
	return strings.TrimSuffix(strings.TrimPrefix(message, "is "), ".")
}

func (w *world) deletePods(deletions []job.Deletion) []string {
	var names []string
	for _, del := range deletions {
		if pod := w.pods[del.Pod.Name]; pod != nil {
			names = append(names, w.short(pod))
			w.deletePod(pod, del.Force)
		}
	}
	return names
}

func (w *world) createPods(d job.Decision) {
	var names []string
	for _, r := range d.CreatePods {
		pod := w.manifest.Pod(r, d.Status.Attempt)
		w.uids++
		pod.UID = types.UID("pod-" + strconv.Itoa(w.uids))
		pod.Status.Phase = corev1.PodPending
		w.pods[pod.Name] = pod
		names = append(names, w.short(pod))
		w.at(w.now.Add(w.pace.Starts), func() { w.start(pod) })
	}
	if len(names) == 0 {
		return
	}
	which := ""
	if d.Status.Attempt > 0 {
		which = fmt.Sprintf(" of attempt %d", d.Status.Attempt+1)
	}
	w.record(Done, "starts %s%s", strings.Join(names, ", "), which)
}

func (w *world) short(pod *corev1.Pod) string {
	return strings.TrimPrefix(pod.Name, w.manifest.Job.Name+"-")
}
