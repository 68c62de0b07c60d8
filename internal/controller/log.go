package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trainyard/trainyard/internal/events"
	"github.com/trainyard/trainyard/internal/job"
)

// withCounts lets each further line have the job's counts.
func withCounts(ctx context.Context, s job.Status) context.Context {
	return ctrllog.IntoContext(ctx, ctrllog.FromContext(ctx).WithValues("attempt", s.Attempt, "retries", s.Retries, "disruptions", s.Disruptions))
}

// log writes a line for each event of a decision: what happened to which job, and why.
func (p *pass) log(ctx context.Context, d job.Decision) {
	logger := ctrllog.FromContext(ctx)
	for _, e := range d.Events {
		fields := []any{"reason", e.Reason, "message", e.Message}
		if f := e.Failure; f != nil {
			fields = append(fields, "replica", f.Replica.String(), "pod", f.Pod, "node", f.Node, "class", f.Class, "cause", f.Reason)
		}
		logger.Info("job event", fields...)
	}
}

// logDeletion writes a line for a pod that the API server has taken the deletion of.
func logDeletion(ctx context.Context, d job.Deletion) {
	ctrllog.FromContext(ctx).Info("deleted pod", "pod", d.Pod.Name, "node", d.Pod.Spec.NodeName, "force", d.Force, "why", d.Why)
}

// recordForced reports that a pod was force-deleted, without waiting for its kubelet: by a metric, and by an event of the job.
func (p *pass) recordForced(ctx context.Context, d job.Deletion) {
	p.metrics.Record(p.manifest.Job.Namespace, p.kind.Framework(), job.Metric{Name: job.PodsForceDeleted, Reason: string(d.NodeState)})
	message := fmt.Sprintf("%s %s force-deletes pod %s: %s.", p.manifest.Job.Kind, p.manifest.Job.Name, d.Pod.Name, d.Why)
	p.recorder.Record(ctx, p.subject().New(corev1.EventTypeWarning, p.manifest.Job.Kind+"ForceDeleted", message, string(d.Pod.UID)))
}

// subject is the job as events name it.
func (p *pass) subject() events.Subject {
	owner := p.manifest.Owner
	return events.Subject{Now: p.at, ObjectReference: corev1.ObjectReference{
		APIVersion: owner.GroupVersion().String(), Kind: owner.Kind, Namespace: p.obj.GetNamespace(), Name: p.obj.GetName(), UID: p.obj.GetUID(),
		ResourceVersion: p.obj.GetResourceVersion(),
	}}
}
