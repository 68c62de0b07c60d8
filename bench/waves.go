package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// timer is a policy that must act on many jobs at nearly the same time.
type timer struct {
	name   string
	policy func(*kubeflowv1.RunPolicy)
	ends   bool // the pods end as soon as all jobs run
	// due is when it must act on a job, and acted whether it has.
	due   func(*kubeflowv1.PyTorchJob) time.Time
	acted func(watch.EventType, *kubeflowv1.PyTorchJob) bool
}

// Long enough that all jobs run, or have ended, before the first timer is due.
const (
	ttl      int32 = 30
	deadline int64 = 60
)

var timers = []timer{
	{
		name: "ttlSecondsAfterFinished", ends: true,
		policy: func(p *kubeflowv1.RunPolicy) { p.TTLSecondsAfterFinished = new(ttl) },
		due: func(j *kubeflowv1.PyTorchJob) time.Time {
			return j.Status.CompletionTime.Add(time.Duration(ttl) * time.Second)
		},
		acted: func(e watch.EventType, j *kubeflowv1.PyTorchJob) bool {
			return j.Status.CompletionTime != nil && (e == watch.Deleted || j.DeletionTimestamp != nil)
		},
	},
	{
		name:   "activeDeadlineSeconds",
		policy: func(p *kubeflowv1.RunPolicy) { p.ActiveDeadlineSeconds = new(deadline) },
		due: func(j *kubeflowv1.PyTorchJob) time.Time {
			return j.Status.StartTime.Add(time.Duration(deadline) * time.Second)
		},
		acted: func(_ watch.EventType, j *kubeflowv1.PyTorchJob) bool {
			return slices.ContainsFunc(j.Status.Conditions, func(c kubeflowv1.JobCondition) bool {
				return c.Type == kubeflowv1.JobFailed && c.Status == corev1.ConditionTrue
			})
		},
	},
}

// measureTimer is how late a timer acts on each job of a shape. A negative lateness is an early one.
func (w *world) measureTimer(ctx context.Context, c contender, s shape, t timer) (latencies, error) {
	namespace := "wave-" + strings.ToLower(t.name)
	if err := w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	stop, err := c.start(ctx, w, namespace, s)
	if err != nil {
		return nil, err
	}
	defer stop()
	p, err := w.followProgress(watching, namespace, s, pytorchJobs)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	late, all := map[string]time.Duration{}, newMoment(s.jobs)
	err = follow(watching, w.client, &kubeflowv1.PyTorchJobList{}, namespace, func(e watch.EventType, obj client.Object) {
		mu.Lock()
		defer mu.Unlock()
		if j := obj.(*kubeflowv1.PyTorchJob); late[j.Name] == 0 && t.acted(e, j) {
			late[j.Name] = time.Since(t.due(j))
			all.see(j.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	k, err := startKubelet(watching, w, namespace)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = inParallel(s.jobs, func(n int) error {
		j := s.job(namespace, n)
		t.policy(&j.Spec.RunPolicy)
		return w.client.Create(ctx, j)
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.allRunning.after(began); err != nil {
		return nil, err
	}
	if t.ends {
		k.succeed()
	}
	if _, err := all.after(began); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	mu.Lock()
	defer mu.Unlock()
	return sorted(late), w.clear(ctx, namespace)
}
