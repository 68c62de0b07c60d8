package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// moment is when something has happened to all.
type moment struct {
	sync.Mutex
	seen map[string]bool
	want int
	done chan time.Time
}

func newMoment(want int) *moment {
	return &moment{seen: map[string]bool{}, want: want, done: make(chan time.Time, 1)}
}

func (m *moment) see(name string) {
	m.Lock()
	defer m.Unlock()
	if m.seen[name] {
		return
	}
	m.seen[name] = true
	if len(m.seen) == m.want {
		m.done <- time.Now()
	}
}

// runTimeout is how long a run may take.
const runTimeout = 20 * time.Minute

// after waits for the moment, and returns how long after another it was.
func (m *moment) after(began time.Time) (time.Duration, error) {
	select {
	case at := <-m.done:
		return at.Sub(began), nil
	case <-time.After(runTimeout):
		m.Lock()
		defer m.Unlock()
		return 0, fmt.Errorf("after %s only %d of %d are so far", runTimeout, len(m.seen), m.want)
	}
}

// progress is how far the jobs of a namespace are, as a watch shows it.
type progress struct {
	allPods, allRunning, allSucceeded *moment
	s                                 shape
	jobs                              workload
	mu                                sync.Mutex
	created                           map[string]time.Time
	sinceCreated                      map[string]time.Duration
	live                              map[string]map[types.UID]bool // of each job, the pods that run and are not being deleted
	whole                             *wholeness
}

func (w *world) followProgress(ctx context.Context, namespace string, s shape, jobs workload) (*progress, error) {
	p := &progress{
		allPods: newMoment(s.total()), allRunning: newMoment(s.jobs), allSucceeded: newMoment(s.jobs), s: s, jobs: jobs,
		created: map[string]time.Time{}, sinceCreated: map[string]time.Duration{}, live: map[string]map[types.UID]bool{},
	}
	err := follow(ctx, w.client, &corev1.PodList{}, namespace, func(e watch.EventType, obj client.Object) { p.seePod(e, obj.(*corev1.Pod)) })
	if err != nil {
		return nil, err
	}
	return p, follow(ctx, w.client, jobs.list(), namespace, func(_ watch.EventType, obj client.Object) { p.seeJob(obj) })
}

func (p *progress) seeJob(j client.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.created[j.GetName()].IsZero() {
		p.created[j.GetName()] = time.Now()
	}
	if p.jobs.running != nil && p.jobs.running(j) {
		p.seeRunning(j.GetName())
	}
	if p.jobs.succeeded(j) {
		p.allSucceeded.see(j.GetName())
	}
}

// seeRunning notes that a job runs.
func (p *progress) seeRunning(job string) {
	if _, known := p.sinceCreated[job]; !known {
		p.sinceCreated[job] = time.Since(p.created[job])
	}
	p.allRunning.see(job)
}

func (p *progress) seePod(e watch.EventType, pod *corev1.Pod) {
	p.allPods.see(pod.Name)
	p.mu.Lock()
	defer p.mu.Unlock()
	job := jobOf(pod)
	if p.live[job] == nil {
		p.live[job] = map[types.UID]bool{}
	}
	if e != watch.Deleted && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
		p.live[job][pod.UID] = true
	} else {
		delete(p.live[job], pod.UID)
	}
	if p.jobs.running == nil && len(p.live[job]) == p.s.sizeOf(job) {
		p.seeRunning(job)
	}
	if p.whole != nil {
		p.whole.see(job, len(p.live[job]), p.s.sizeOf(job))
	}
}

// latencies are how long each job took from its creation until it was Running.
func (p *progress) latencies() latencies {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sorted(p.sinceCreated)
}

// wholeness is when each job that lost a pod had all of them again.
type wholeness struct {
	broken map[string]time.Time
	took   map[string]time.Duration
	all    *moment
}

func (w *wholeness) see(job string, live, want int) {
	if _, broken := w.broken[job]; !broken && live < want {
		w.broken[job] = time.Now()
	} else if broken && live == want && w.took[job] == 0 {
		w.took[job] = time.Since(w.broken[job])
		w.all.see(job)
	}
}

// recovery is how long each job takes to be whole again after a failure.
func (p *progress) recovery(fail func()) (latencies, error) {
	whole := &wholeness{broken: map[string]time.Time{}, took: map[string]time.Duration{}, all: newMoment(p.s.jobs)}
	p.mu.Lock()
	p.whole = whole
	p.mu.Unlock()
	fail()
	_, err := whole.all.after(time.Now())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole = nil
	return sorted(whole.took), err
}

// latencies are sorted durations.
type latencies []time.Duration

func sorted(took map[string]time.Duration) latencies { return slices.Sorted(maps.Values(took)) }

// at is the duration that a share of all do not exceed.
func (l latencies) at(share float64) float64 {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(share*float64(len(l))), len(l)-1)].Seconds()
}

// follow calls f for each change of the objects of a namespace. The API server ends watches that cannot keep up; they go on after the last
// change that was seen.
func follow(ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string, f func(watch.EventType, client.Object)) error {
	events, err := c.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	go func() {
		for last := ""; ctx.Err() == nil; {
			for e := range events.ResultChan() {
				if obj, ok := e.Object.(client.Object); ok {
					last = obj.GetResourceVersion()
					f(e.Type, obj)
				}
			}
			events.Stop()
			again, err := c.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: last}})
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			events = again
		}
		events.Stop()
	}()
	return nil
}
