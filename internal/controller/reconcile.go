// Package controller runs jobs on a cluster. There is one reconciler, instantiated for each kind, and it has no opinions:
// it observes, lets the rules of package job decide, records what they say, and acts, in that order. Whatever fails on the
// way, the next pass starts from what was recorded.
package controller

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trainyard/trainyard/internal/events"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/metrics"
)

// Reconciler runs the jobs of one kind.
type Reconciler struct {
	kind kinds.Kind
	// client reads from caches and writes to the API server; live reads past the caches.
	client   client.Client
	live     client.Reader
	recorder *events.Recorder
	metrics  *metrics.Metrics
	now      func() time.Time
	memories memories
	// controller is what calls Reconcile; childKinds are the kinds of children that the cluster serves.
	controller crcontroller.Controller
	childKinds *childKinds
	// clusterDomain is the DNS domain of the cluster.
	clusterDomain string
	agent         manifest.Agent
	// traced says that all jobs get their place in a trace (see Options).
	traced bool
	// gangScheduler is who places jobs together (see Options).
	gangScheduler string
}

// pass is one reconciliation of one job.
type pass struct {
	*Reconciler
	*memory
	// stored is the job as the API server has it; obj is that with what it is made from, which the next record adds.
	stored, obj manifest.Object
	manifest    *manifest.Manifest
	at          time.Time
}

// conflictWait is the time after which a pass is repeated that lost against another writer.
const conflictWait = 10 * time.Millisecond

// Reconcile observes one job, and does what the rules decide.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj, err := r.fetch(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.memories.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	whole, err := r.complete(ctx, obj)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := &pass{
		Reconciler: r, memory: r.memories.job(request.NamespacedName), stored: obj, obj: whole, manifest: r.kind.Read(whole), at: r.now(),
	}
	p.manifest.ClusterDomain = r.clusterDomain
	p.manifest.Traced = p.manifest.Traced || r.traced
	if r.agent.Image != "" {
		p.manifest.Agent = r.agent
	}
	if err := p.placeTogether(); err != nil {
		return reconcile.Result{}, err
	}
	observed, err := p.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision, err := p.decide(ctx, observed)
	if err != nil {
		return reconcile.Result{}, err
	}
	if decision.Ask.Job {
		p.unsure = true // the next pass reads it from the API server
		return reconcile.Result{RequeueAfter: conflictWait}, nil
	}
	recorded, later, err := p.record(ctx, decision)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !recorded {
		return reconcile.Result{RequeueAfter: conflictWait}, nil
	}
	ctx = withCounts(ctx, decision.Status)
	r.recorder.Record(ctx, events.Of(p.subject(), decision)...)
	p.count(observed, decision)
	p.log(ctx, decision)
	refused, err := p.act(ctx, decision)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: p.next(decision, later, refused)}, nil
}

// decide calls the rules until they have all facts they ask for.
func (p *pass) decide(ctx context.Context, o job.Observed) (job.Decision, error) {
	for {
		d := job.Decide(o)
		if !d.Asks() || d.Ask.Job {
			return d, nil
		}
		if err := p.answer(ctx, &o, d.Ask); err != nil {
			return d, err
		}
	}
}

// next is the time until the next pass if nothing happens; zero for none.
func (p *pass) next(d job.Decision, later time.Duration, refused bool) time.Duration {
	wait := later
	shorten := func(to time.Duration) {
		if to = max(to, time.Millisecond); wait == 0 || to < wait {
			wait = to
		}
	}
	if refused {
		shorten(conflictWait)
	}
	if !d.RequeueAt.IsZero() {
		shorten(d.RequeueAt.Sub(p.now()))
	}
	if at := p.nextForgotten(); !at.IsZero() {
		shorten(at.Sub(p.now()) + time.Second) // the cache may never show it
	}
	if len(d.DeletePods) > 0 || d.DeleteJob {
		shorten(deleteRetryWait + time.Second) // a request may be lost
	}
	return wait
}

// count adds to the metrics. A deletion of the job is counted when it is done.
func (p *pass) count(o job.Observed, d job.Decision) {
	namespace, framework := p.manifest.Job.Namespace, p.kind.Framework()
	for _, m := range d.Metrics {
		if m.Name != job.JobsDeleted {
			p.metrics.Record(namespace, framework, m)
		}
	}
	if d.Write == job.WriteNow { // a status that is written later says nothing about the past
		p.metrics.RecordStep(namespace, framework, metrics.Step{
			Created: p.stored.GetCreationTimestamp().Time, Before: o.Status, After: d.Status, Pods: o.Pods, GPUs: p.manifest.GPUs(),
		})
	}
}
