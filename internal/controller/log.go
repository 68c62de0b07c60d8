package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trainyard/trainyard/internal/events"
	"github.com/trainyard/trainyard/internal/job"
)

// log writes a line for each event of a decision, and for each pod that it deletes: what happened to which job, and why.
func (p *pass) log(ctx context.Context, d job.Decision) {
	logger := ctrllog.FromContext(ctx).WithValues("attempt", d.Status.Attempt, "retries", d.Status.Retries, "disruptions", d.Status.Disruptions)
	for _, e := range d.Events {
		fields := []any{"reason", e.Reason, "message", e.Message}
		if f := e.Failure; f != nil {
			fields = append(fields, "replica", f.Replica.String(), "pod", f.Pod, "node", f.Node, "class", f.Class, "cause", f.Reason)
		}
		logger.Info("job event", fields...)
	}
	for _, deletion := range d.DeletePods {
		logger.Info("deleting pod", "pod", deletion.Pod.Name, "node", deletion.Pod.Spec.NodeName, "force", deletion.Force, "why", deletion.Why)
	}
	if d.DeleteJob {
		logger.Info("deleting job", "why", "its ttlSecondsAfterFinished has passed")
	}
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
