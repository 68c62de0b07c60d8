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
	// Starts is from a pod's creation to its training's start, Stops from the request to go to being gone.
	Starts, Stops time.Duration
	// Trains is how long a replica trains, from each start, before it exits 0.
	Trains time.Duration
	// Limit is when the simulation ends at the latest.
	Limit time.Duration
}

// epoch is when every job is created.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// most is how many things may happen before a life is taken for endless.
const most = 20000

// world is a small Kubernetes around one job.
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

// entry is something that will happen. Entries of one moment keep their order.
type entry struct {
	at time.Time
	do func()
}

// Live lets a job live.
func Live(m *manifest.Manifest, script Script, pace Pace) (*Life, error) {
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
			w.at(epoch.Add(h.At), func() { w.happen(h) })
		}
		if h.What == Down {
			w.at(epoch.Add(h.Until), func() { w.down = false; w.tell(FromScript, "operator is up again") })
		}
	}
	if err := w.live(); err != nil {
		return nil, err
	}
	for _, open := range w.runs {
		w.life.Runs[open].End = w.now.Sub(epoch)
	}
	w.life.Length = w.now.Sub(epoch)
	w.life.conclude(w.status, w.gone)
	return w.life, nil
}

// live goes from moment to moment until nothing is left to happen.
func (w *world) live() error {
	for range most {
		for len(w.agenda) > 0 && !w.agenda[0].at.After(w.now) {
			next := w.agenda[0]
			w.agenda = w.agenda[1:]
			next.do()
		}
		if !w.down {
			if err := w.settle(); err != nil {
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

// next is the next moment at which something happens.
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

func (w *world) tell(kind Kind, format string, args ...any) {
	w.life.Moments = append(w.life.Moments, Moment{w.now.Sub(epoch), kind, fmt.Sprintf(format, args...)})
}

// happen carries out a sentence of the script.
func (w *world) happen(h Happening) {
	switch h.What {
	case Down:
		w.tell(FromScript, "operator is down")
		w.down = true
	case Suspend, Resume:
		w.tell(FromScript, "%s %s", h.Who, h.What)
		w.manifest.Job.Policy.Suspend = h.What == Suspend
		w.manifest.Job.Generation++
	case Scales:
		w.tell(FromScript, "%s scales to %d", h.Who, h.Number)
		w.manifest.Job.Generation++
		for i := range w.manifest.Job.Roles {
			if strings.EqualFold(w.manifest.Job.Roles[i].Name, h.Who) {
				w.manifest.Job.Roles[i].Replicas = h.Number
			}
		}
	default:
		w.befall(w.pods[w.manifest.Job.Name+"-"+h.Who], h)
	}
}

// befall does to a pod what the script says. What cannot happen to it in its state does not.
func (w *world) befall(pod *corev1.Pod, h Happening) {
	switch {
	case pod == nil:
		w.tell(FromScript, "%s %s: it has no pod now", h.Who, h.What)
	case h.What == Deleted:
		w.tell(FromScript, "%s %s", h.Who, h.What)
		w.deletePod(pod, false)
	case !running(pod):
		w.tell(FromScript, "%s %s: it does not run now", h.Who, h.What)
	case h.What == Evicted:
		w.tell(FromScript, "%s %s", h.Who, h.What)
		w.evict(pod)
	case h.What == OOM:
		w.tell(FromScript, "%s %s", h.Who, h.What)
		w.exit(pod, 137, "OOMKilled")
	default:
		w.tell(FromScript, "%s exits %d", h.Who, h.Number)
		w.exit(pod, h.Number, "Error")
	}
}

// settle lets the operator work until it has nothing to do at this moment.
func (w *world) settle() error {
	for range 200 {
		if w.gone {
			return nil
		}
		d := w.decide()
		w.wakeAt = d.RequeueAt
		if w.carryOut(d) {
			return nil
		}
	}
	return errors.New("the operator does not come to rest")
}

func (w *world) decide() job.Decision {
	o := job.Observed{Now: w.now, Job: w.manifest.Job, Status: w.status, Live: true}
	o.Pods = sorted(w.pods, (*corev1.Pod).DeepCopy)
	o.Children = sorted(w.children, func(c job.Child) job.Child { return c })
	d := job.Decide(o)
	for range 3 {
		if len(d.Ask.Nodes) == 0 && !d.Ask.Pods {
			return d
		}
		o.Nodes = map[string]job.NodeState{}
		for _, node := range d.Ask.Nodes {
			o.Nodes[node] = job.NodeHealthy
		}
		d = job.Decide(o)
	}
	return d
}

// carryOut does what was decided, and answers whether that was nothing.
func (w *world) carryOut(d job.Decision) (rest bool) {
	w.status = d.Status
	for _, e := range d.Events {
		w.tell(Told, "%s", w.words(e.Message))
	}
	if names := w.stop(d.DeletePods); len(names) > 0 {
		w.tell(Done, "stops %s", strings.Join(names, ", "))
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
	w.create(d)
	if d.DeleteJob {
		w.tell(Done, "deletes the job: its TTL has passed")
		w.gone = true
	}
	return d.Write == job.WriteNothing && len(d.DeletePods)+len(d.DeleteChildren)+len(d.CreateChildren)+len(d.CreatePods) == 0 && !d.SizeJob
}

// words are the operator's without the job's name, which is the same in all of them.
func (w *world) words(message string) string {
	message = strings.TrimPrefix(message, w.manifest.Job.Kind+" "+w.manifest.Job.Name+" ")
	return strings.TrimSuffix(strings.TrimPrefix(message, "is "), ".")
}

func (w *world) stop(deletions []job.Deletion) []string {
	var names []string
	for _, del := range deletions {
		if pod := w.pods[del.Pod.Name]; pod != nil {
			names = append(names, w.short(pod))
			w.deletePod(pod, del.Force)
		}
	}
	return names
}

func (w *world) create(d job.Decision) {
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
	w.tell(Done, "starts %s%s", strings.Join(names, ", "), which)
}

func (w *world) short(pod *corev1.Pod) string {
	return strings.TrimPrefix(pod.Name, w.manifest.Job.Name+"-")
}
