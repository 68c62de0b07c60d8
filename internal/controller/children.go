package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// childKinds are the kinds of children besides pods, as this cluster serves them. Whether it serves an optional kind is asked
// at the start, and again while a job wants such a child; from then on the kind is watched.
type childKinds struct {
	mgr         ctrl.Manager
	reconcilers []*Reconciler

	sync.Mutex
	served, missing []manifest.ChildKind
	asked           time.Time
}

// setup watches the kinds that every cluster has, and those of the others that this one has.
func (c *childKinds) setup(ctx context.Context, kinds []manifest.ChildKind, now time.Time) error {
	c.asked = now
	for _, kind := range kinds {
		if kind.Unseen {
			continue
		}
		if kind.Optional && !c.serves(kind) {
			c.missing = append(c.missing, kind)
		} else if err := c.watch(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// serves asks the API server whether it serves the kind. No answer counts as no.
func (c *childKinds) serves(kind manifest.ChildKind) bool {
	gk := schema.GroupKind{Group: kind.GroupVersion.Group, Kind: kind.Kind}
	_, err := c.mgr.GetRESTMapper().RESTMapping(gk, kind.GroupVersion.Version)
	return err == nil
}

// watch lets changes of such children wake their jobs, and finds them by their job.
func (c *childKinds) watch(ctx context.Context, kind manifest.ChildKind) error {
	if err := c.mgr.GetFieldIndexer().IndexField(ctx, kind.New(), indexJob, indexKey); err != nil {
		return fmt.Errorf("indexing the kind %s: %w", kind.Kind, err)
	}
	for _, r := range c.reconcilers {
		if err := r.controller.Watch(source.Kind(c.mgr.GetCache(), client.Object(kind.New()), r.children())); err != nil {
			return fmt.Errorf("watching the kind %s: %w", kind.Kind, err)
		}
	}
	c.served = append(c.served, kind)
	return nil
}

// of are the kinds that are served, and the names of those that the job wants and the cluster lacks.
func (c *childKinds) of(ctx context.Context, j job.Job, now time.Time) (served []manifest.ChildKind, unserved map[string]bool, err error) {
	c.Lock()
	defer c.Unlock()
	wanted := func(kind manifest.ChildKind) bool {
		return slices.ContainsFunc(j.Children, func(child job.Child) bool { return child.Kind == kind.Kind })
	}
	if slices.ContainsFunc(c.missing, wanted) && now.Sub(c.asked) >= job.UnservedWait {
		c.asked = now
		for _, kind := range c.missing {
			if c.serves(kind) {
				err = c.watch(ctx, kind)
			}
		}
		c.missing = slices.DeleteFunc(c.missing, func(kind manifest.ChildKind) bool {
			return slices.ContainsFunc(c.served, func(s manifest.ChildKind) bool { return s.Kind == kind.Kind })
		})
	}
	for _, kind := range c.missing {
		if wanted(kind) {
			if unserved == nil {
				unserved = map[string]bool{}
			}
			unserved[kind.Kind] = true
		}
	}
	return slices.Clone(c.served), unserved, err
}

// observeChildren gathers what the caches know of the job's children besides its pods.
func (p *pass) observeChildren(ctx context.Context, o *job.Observed, mine []client.ListOption) error {
	served, unserved, err := p.childKinds.of(ctx, o.Job, p.at)
	if err != nil {
		return err
	}
	o.Unserved = unserved
	for _, kind := range served {
		list, err := listOf(kind.New(), kind.GroupVersion.WithKind(kind.Kind), p.client.Scheme())
		if err == nil {
			err = p.childKinds.mgr.GetCache().List(ctx, list, mine...) // a client reads untyped objects past the cache
		}
		if err != nil {
			return fmt.Errorf("listing children of %s of the kind %s: %w", o.Job.Name, kind.Kind, err)
		}
		var seen []manifest.Object
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			seen = append(seen, item.(manifest.Object))
			return nil
		})
		for _, obj := range existing(p.memory, kind.Kind, seen, p.at) {
			o.Children = append(o.Children, kind.Observe(obj, o.Job))
		}
	}
	return nil
}

// listOf is an empty list of objects of the kind.
func listOf(obj client.Object, gvk schema.GroupVersionKind, scheme *runtime.Scheme) (client.ObjectList, error) {
	gvk.Kind += "List"
	if _, untyped := obj.(*unstructured.Unstructured); untyped {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	list, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("creating an empty %s: %w", gvk.Kind, err)
	}
	return list.(client.ObjectList), nil
}
