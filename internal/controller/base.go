package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
)

// complete adds to a job what it needs of the object it is made from, if it still needs that and the object exists. It is read
// from the API server itself, once in the job's life: a user who edits a runtime and then submits a job means the edited one.
func (r *Reconciler) complete(ctx context.Context, obj manifest.Object) (manifest.Object, error) {
	based, ok := r.kind.(kinds.Based)
	if !ok {
		return obj, nil
	}
	base := based.Wants(obj)
	if base == nil {
		return obj, nil
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(base), base); apierrors.IsNotFound(err) {
		return obj, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading what %s is made from: %w", obj.GetName(), err)
	}
	whole := obj.DeepCopyObject().(manifest.Object)
	return whole, based.Take(whole, base)
}

// created passes only creations: an edited runtime does not change jobs that have begun.
var created = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// waiting wakes the jobs that wait for an object of a name.
func (r *Reconciler) waiting(based kinds.Based, scheme *runtime.Scheme) handler.MapFunc {
	return func(ctx context.Context, base client.Object) []reconcile.Request {
		list, err := listOf(based.New(), based.GroupVersion().WithKind(based.Name()), scheme)
		if err != nil || r.client.List(ctx, list, client.InNamespace(base.GetNamespace()), client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		var requests []reconcile.Request
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			job := item.(manifest.Object)
			if wanted := based.Wants(job); wanted != nil && wanted.GetName() == base.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
			}
			return nil
		})
		return requests
	}
}
