package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// act carries out what follows the record: deletions, then creations. It returns whether the API server rejected
// something, which the rules should know at once.
func (p *pass) act(ctx context.Context, d job.Decision) (refused bool, err error) {
	if d.DeleteJob {
		return false, p.deleteJob(ctx)
	}
	err = inBatches(len(d.DeletePods), func(i int) error { return p.deletePod(ctx, d.DeletePods[i]) })
	err = errors.Join(err, inBatches(len(d.DeleteChildren), func(i int) error {
		return p.deleteChild(ctx, d.DeleteChildren[i])
	}))
	if err != nil {
		return false, err
	}
	return p.create(ctx, d)
}

// create brings what is missing, in the order in which it is needed: required children, pods, other children.
func (p *pass) create(ctx context.Context, d job.Decision) (refused bool, err error) {
	required, optional := partition(d.CreateChildren)
	avoided := d.Status.Avoided(p.manifest.Job, p.at)
	err = inBatches(len(required), func(i int) error { return p.createChild(ctx, required[i]) })
	if err == nil {
		err = inBatches(len(d.CreatePods), func(i int) error {
			pod := p.manifest.Pod(d.CreatePods[i], d.Status.Attempt)
			manifest.Avoid(pod, avoided)
			return p.createObject(ctx, pod, "Pod", true)
		})
	}
	if err == nil {
		err = inBatches(len(optional), func(i int) error { return p.createChild(ctx, optional[i]) })
	}
	if err == nil {
		err = p.update(ctx, d)
	}
	switch {
	case apierrors.IsConflict(err): // the job has changed, and is looked at again
		p.unsure = true
		return true, nil
	case err != nil:
		return p.rejected(err)
	}
	if len(d.CreatePods)+len(d.CreateChildren) > 0 {
		p.rejection = nil
	}
	return false, nil
}

// partition separates the children without which no pod is created from the others.
func partition(children []job.Child) (required, optional []job.Child) {
	for _, child := range children {
		if child.Required {
			required = append(required, child)
		} else {
			optional = append(optional, child)
		}
	}
	return required, optional
}

// update changes what exists: children that the job wants otherwise, and the number of replicas in the job itself.
func (p *pass) update(ctx context.Context, d job.Decision) error {
	for _, child := range d.UpdateChildren {
		changed := child.Changed
		if changed == nil {
			changed = manifest.WithMembers(child)
		}
		if err := client.IgnoreNotFound(p.client.Patch(ctx, changed, client.MergeFrom(child.Object))); err != nil {
			return fmt.Errorf("updating %s %s: %w", child.Kind, child.GetName(), err)
		}
	}
	if d.SizeJob {
		return p.writeSize(ctx)
	}
	return nil
}

func (p *pass) createChild(ctx context.Context, child job.Child) error {
	if !child.Unseen {
		return p.createObject(ctx, manifest.WithMembers(child), child.ChildKind.String(), child.Required)
	}
	obj := child.Object.DeepCopyObject().(client.Object)
	for _, kind := range manifest.ChildKinds {
		if kind.ChildKind == child.ChildKind && kind.Fill != nil {
			if err := kind.Fill(obj); err != nil {
				return fmt.Errorf("creating %s %s: %w", strings.ToLower(child.Kind), child.GetName(), err)
			}
		}
	}
	err := p.client.Create(ctx, obj)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // one of an earlier attempt
		return nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"): // by RBAC; quotas and policies forbid, too
		err = fmt.Errorf("%w; the operator needs the rights of config/mpi, which is mpi: true in the chart", err)
	}
	return &rejection{object: strings.ToLower(child.Kind) + " " + child.GetName(), optional: !child.Required, error: err}
}

// createObject creates a pod or another child. A name that is taken by a child of ours is no failure: the cache was behind.
func (p *pass) createObject(ctx context.Context, obj client.Object, kind string, required bool) error {
	what := strings.ToLower(kind)
	err := p.client.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		existing := emptyLike(obj)
		if getErr := p.live.Get(ctx, client.ObjectKeyFromObject(obj), existing); getErr != nil {
			return fmt.Errorf("reading %s %s: %w", what, obj.GetName(), getErr)
		}
		if owner := metav1.GetControllerOf(existing); owner != nil && owner.UID == p.manifest.Job.UID {
			p.noteCreated(kind, existing, p.at)
			return nil
		}
	}
	if err != nil {
		return &rejection{object: what + " " + obj.GetName(), optional: !required, error: err}
	}
	p.noteCreated(kind, obj, p.at)
	return nil
}

// emptyLike is an empty object of the same kind.
func emptyLike(obj client.Object) client.Object {
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return empty
}

// rejection is an answer of the API server to a creation.
type rejection struct {
	object   string
	optional bool
	error
}

func (r *rejection) Unwrap() error { return r.error }

// rejected keeps an error that is about the job's children for the rules. Other errors are trouble of the API server itself.
func (p *pass) rejected(err error) (bool, error) {
	var r *rejection
	if !errors.As(err, &r) {
		return false, err
	}
	switch {
	case apierrors.HasStatusCause(r, corev1.NamespaceTerminatingCause):
		return false, nil
	case apierrors.IsInvalid(r), apierrors.IsForbidden(r), apierrors.IsAlreadyExists(r), apierrors.IsBadRequest(r):
	default:
		return false, fmt.Errorf("creating %s: %w", r.object, r.error)
	}
	times := int32(1)
	if p.rejection != nil {
		times += p.rejection.Times
	}
	p.rejection = &job.Rejection{Object: r.object, Optional: r.optional, Invalid: apierrors.IsInvalid(r), Message: r.Error(), At: p.at, Times: times}
	return true, nil
}

// deletePod deletes a pod by its UID, without reading it first.
func (p *pass) deletePod(ctx context.Context, d job.Deletion) error {
	key := d.Pod.UID
	var options []client.DeleteOption
	switch {
	case d.Force:
		key += " by force"
		options = append(options, client.GracePeriodSeconds(0))
	case d.Unchanged:
		options = append(options, client.Preconditions{UID: &d.Pod.UID, ResourceVersion: &d.Pod.ResourceVersion})
	}
	if !p.mayDelete(key, p.at) {
		return nil
	}
	deleted, err := p.delete(ctx, d.Pod, options...)
	if err != nil {
		p.notDeleted(key)
	}
	if deleted {
		logDeletion(ctx, d)
	}
	if deleted && d.Force {
		p.recordForced(ctx, d)
	}
	return err
}

// deleteChild removes a child that has no grace period, and remembers that for a cache that still shows it.
func (p *pass) deleteChild(ctx context.Context, child job.Child) error {
	deleted, err := p.delete(ctx, child.Object)
	if err == nil {
		p.mayDelete(child.GetUID(), p.at)
	}
	if deleted {
		ctrllog.FromContext(ctx).Info("deleted child", "kind", child.Kind, "child", child.GetName())
	}
	return err
}

// delete deletes an object by its UID. It returns whether that was this request: the object may be gone already.
func (p *pass) delete(ctx context.Context, obj client.Object, options ...client.DeleteOption) (deleted bool, err error) {
	uid := obj.GetUID()
	err = p.client.Delete(ctx, obj, append([]client.DeleteOption{client.Preconditions{UID: &uid}}, options...)...) // the last preconditions count
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", obj.GetName(), err)
	}
	return true, nil
}

// deleteJob removes the job itself. Its children follow by the garbage collector. It is counted once: not when the job is gone
// already.
func (p *pass) deleteJob(ctx context.Context) error {
	uid := p.obj.GetUID()
	err := p.client.Delete(ctx, p.obj, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", p.obj.GetName(), err)
	}
	ctrllog.FromContext(ctx).Info("deleted job", "why", "its ttlSecondsAfterFinished has passed")
	p.metrics.Record(p.manifest.Job.Namespace, p.kind.Framework(), job.Metric{Name: job.JobsDeleted})
	return nil
}

// writeSize writes the job's present number of replicas where an autoscaler looks for it. It is the only thing we write into a
// spec, and only where it is unset: on the version it was decided on, or the one that recorded the decision.
func (p *pass) writeSize(ctx context.Context) error {
	version := p.stored.GetResourceVersion()
	if p.newest != nil {
		version = p.newest.GetResourceVersion()
	}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, version, p.manifest.ElasticSize())
	err := p.client.SubResource("scale").Patch(ctx, p.obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch),
		&client.SubResourcePatchOptions{SubResourceBody: &autoscalingv1.Scale{}})
	if err != nil {
		return fmt.Errorf("writing the size of %s: %w", p.manifest.Job.Name, err)
	}
	return nil
}

// maxInFlight is how many requests of one job are in flight at most, so that a large job leaves room for others.
const maxInFlight = 64

// inBatches does n things in parallel, in batches that double from one to maxInFlight: an error that all calls would get costs one call. It stops after the first batch in which something failed.
func inBatches(n int, do func(int) error) error {
	for done, size := 0, 1; done < n; size *= 2 {
		size = min(size, n-done, maxInFlight)
		failed := make([]error, size)
		var group sync.WaitGroup
		for i := range size {
			group.Go(func() { failed[i] = do(done + i) })
		}
		group.Wait()
		if err := errors.Join(failed...); err != nil {
			return err
		}
		done += size
	}
	return nil
}
