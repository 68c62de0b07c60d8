package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// childKinds are the kinds of children besides pods. Those that every cluster has are watched from the start. An optional kind is
// watched from the moment when a job wants it and the cluster serves it.
type childKinds struct {
	mgr         ctrl.Manager
	reconcilers []*Reconciler
	caches      cache.Options // of an optional kind
	everywhere  []manifest.ChildKind
	optional    []*optionalKind
}

// setup watches the kinds that every cluster has.
func (c *childKinds) setup(ctx context.Context, kinds []manifest.ChildKind) error {
	for _, kind := range kinds {
		if kind.Unseen {
			continue
		}
		if kind.Optional {
			c.optional = append(c.optional, &optionalKind{ChildKind: kind})
			continue
		}
		c.everywhere = append(c.everywhere, kind)
		if err := c.watch(ctx, kind, c.mgr.GetCache()); err != nil {
			return err
		}
	}
	return nil
}

// watch lets changes of such children wake their jobs, and finds them by their job.
func (c *childKinds) watch(ctx context.Context, kind manifest.ChildKind, from cache.Cache) error {
	if err := from.IndexField(ctx, kind.New(), indexJob, indexKey); err != nil {
		return fmt.Errorf("indexing the kind %s: %w", kind.ChildKind, err)
	}
	for _, r := range c.reconcilers {
		if err := r.controller.Watch(source.Kind(from, client.Object(kind.New()), r.children())); err != nil {
			return fmt.Errorf("watching the kind %s: %w", kind.ChildKind, err)
		}
	}
	return nil
}

// observeChildren gathers what the caches know of the job's children besides its pods. A kind that cannot be read holds up only the
// jobs that want it.
func (p *pass) observeChildren(ctx context.Context, o *job.Observed, mine []client.ListOption) error {
	for _, kind := range p.childKinds.everywhere {
		if err := p.listChildren(ctx, o, kind, p.childKinds.mgr.GetCache(), mine); err != nil {
			return err
		}
	}
	for _, kind := range p.childKinds.optional {
		wanted := slices.ContainsFunc(o.Job.Children, func(child job.Child) bool { return child.ChildKind == kind.ChildKind.ChildKind })
		from, why := kind.reader(ctx, p.childKinds, wanted, p.at)
		switch {
		case from != nil:
			if err := p.listChildren(ctx, o, kind.ChildKind, from, mine); err != nil {
				return err
			}
		case wanted:
			if o.Unreadable == nil {
				o.Unreadable = map[job.ChildKind]string{}
			}
			o.Unreadable[kind.ChildKind.ChildKind] = why
		}
	}
	return nil
}

// listChildren adds the job's children of one kind.
func (p *pass) listChildren(ctx context.Context, o *job.Observed, kind manifest.ChildKind, from client.Reader, mine []client.ListOption) error {
	list, err := listOf(kind.New(), kind.GroupVersionKind(), p.client.Scheme())
	if err == nil {
		err = from.List(ctx, list, mine...) // a client reads untyped objects past the cache
	}
	if err != nil {
		return fmt.Errorf("listing children of %s of the kind %s: %w", o.Job.Name, kind.ChildKind, err)
	}
	var seen []manifest.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		seen = append(seen, item.(manifest.Object))
		return nil
	})
	for _, obj := range existing(p.memory, kind.ChildKind.String(), seen, p.at) {
		o.Children = append(o.Children, kind.Observe(obj, o.Job))
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
