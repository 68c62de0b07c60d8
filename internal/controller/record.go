package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// mayWait is how long a change of counts and messages alone waits, to be written together with other changes.
const mayWait = 3 * time.Second

// record writes the decision's status, on the version of the job it was decided on. It returns whether the rest of the
// decision may be carried out, and when a delayed write is due. A conflict is no error: the job has changed, and
// is looked at again.
func (p *pass) record(ctx context.Context, d job.Decision) (recorded bool, later time.Duration, err error) {
	switch d.Write {
	case job.WriteNothing:
		p.unsaved = time.Time{}
		return true, 0, nil
	case job.WriteLater:
		if p.unsaved.IsZero() {
			p.unsaved = p.at
		}
		if waited := p.at.Sub(p.unsaved); waited < mayWait {
			return true, mayWait - waited, nil
		}
	}
	written := p.obj.DeepCopyObject().(manifest.Object)
	p.kind.Write(written, p.manifest, d.Status)
	patch := client.MergeFromWithOptions(p.stored, client.MergeFromWithOptimisticLock{})
	switch err := p.client.Status().Patch(ctx, written, patch); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		p.unsure = true
		return false, 0, nil
	case err != nil:
		p.unsure = true
		return false, 0, fmt.Errorf("recording the status of %s: %w", p.manifest.Job.Name, err)
	}
	p.newest, p.fresh, p.unsaved = written, true, time.Time{}
	return true, 0, nil
}
