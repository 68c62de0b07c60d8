package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
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
type progress struct{ allPods, allRunning, allSucceeded *moment }

func (w *world) followProgress(ctx context.Context, namespace string, s shape) (*progress, error) {
	p := &progress{newMoment(s.jobs * s.pods), newMoment(s.jobs), newMoment(s.jobs)}
	err := follow(ctx, w.client, &corev1.PodList{}, namespace, func(_ watch.EventType, obj client.Object) { p.allPods.see(obj.GetName()) })
	if err != nil {
		return nil, err
	}
	return p, follow(ctx, w.client, &kubeflowv1.PyTorchJobList{}, namespace, func(_ watch.EventType, obj client.Object) {
		for _, c := range obj.(*kubeflowv1.PyTorchJob).Status.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == kubeflowv1.JobRunning:
				p.allRunning.see(obj.GetName())
			case c.Type == kubeflowv1.JobSucceeded:
				p.allSucceeded.see(obj.GetName())
			}
		}
	})
}

// follow calls f for each change of the objects of a namespace.
func follow(ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string, f func(watch.EventType, client.Object)) error {
	events, err := c.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	go func() {
		defer events.Stop()
		for e := range events.ResultChan() {
			if obj, ok := e.Object.(client.Object); ok {
				f(e.Type, obj)
			}
		}
	}()
	return nil
}
