package yard

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/manifest"
)

// Follow sends a job each time it changes, first as it is now, until ctx ends, and at last that it is gone. It survives
// outages of the API server: contact is called when the server stops answering, and when it answers again. A person who may not
// list jobs gets an error.
func (y *Yard) Follow(ctx context.Context, j *Job, contact func(answers bool)) (<-chan *Job, error) {
	newest := make(chan *Job, 1)
	publish := func(next *Job) {
		select { // only the newest matters
		case <-newest:
		default:
		}
		newest <- next
	}
	list, err := y.newList(j.Kind)
	if err != nil {
		return nil, err
	}
	only := []client.ListOption{
		client.InNamespace(j.Job.Namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", j.Job.Name)},
	}
	if err := y.mayList(ctx, list, only); err != nil {
		return nil, fmt.Errorf("following job %s: %w", j.Job.Name, err)
	}
	var seen atomic.Bool
	synced := y.watch(ctx, list, j.Kind.New(), only, contact, func(obj client.Object, gone bool) {
		if o := obj.(manifest.Object); o.GetUID() == j.Job.UID {
			seen.Store(true)
			publish(&Job{Kind: j.Kind, Object: o, Manifest: j.Kind.Read(o), Gone: gone})
		}
	})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), synced) && !seen.Load() && y.isGone(ctx, j) {
			publish(&Job{Kind: j.Kind, Object: j.Object, Manifest: j.Manifest, Gone: true})
		}
	}()
	return newest, nil
}

// mayList returns an error if this person may not list what would be watched: a watch only retries that. A server that does not
// answer in time is not an error here, because the watch reports it.
func (y *Yard) mayList(ctx context.Context, list client.ObjectList, options []client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, extraRequestTimeout)
	defer cancel()
	if err := y.List(ctx, list, options...); apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}

// isGone reports whether a job that the first list did not have was deleted before. That list may be older than the job.
func (y *Yard) isGone(ctx context.Context, j *Job) bool {
	gone := false
	_ = wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		now := j.Kind.New()
		err := y.Get(ctx, client.ObjectKeyFromObject(j.Object), now)
		gone = apierrors.IsNotFound(err) || err == nil && now.GetUID() != j.Job.UID
		return gone || err == nil, nil
	})
	return gone
}

// followPods calls changed for the pods of a job when they appear, change and go.
func (y *Yard) followPods(ctx context.Context, j *Job, changed func(pod *corev1.Pod, gone bool)) {
	y.watch(ctx, &corev1.PodList{}, &corev1.Pod{}, []client.ListOption{client.InNamespace(j.Job.Namespace), Selector(j)},
		func(bool) {}, func(obj client.Object, gone bool) {
			if owner := metav1.GetControllerOf(obj); owner != nil && owner.UID == j.Job.UID {
				changed(obj.(*corev1.Pod), gone)
			}
		})
}

// watch calls changed for every object of a list, one at a time, until ctx ends. What it returns reports whether changed was called
// for all objects of the first list.
func (y *Yard) watch(ctx context.Context, list client.ObjectList, example client.Object, options []client.ListOption,
	contact func(answers bool), changed func(obj client.Object, gone bool),
) (synced func() bool) {
	answered := contactChanges(contact)
	with := func(raw metav1.ListOptions) []client.ListOption {
		return append([]client.ListOption{&client.ListOptions{Raw: &raw}}, options...)
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			all := list.DeepCopyObject().(client.ObjectList)
			err := y.List(ctx, all, with(raw)...)
			answered(ctx, err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			w, err := y.Watch(ctx, list.DeepCopyObject().(client.ObjectList), with(raw)...)
			if err != nil {
				answered(ctx, err)
				return nil, err
			}
			return watchContact(ctx, w, answered), nil
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: example,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { changed(obj.(client.Object), false) },
			UpdateFunc: func(_, obj any) { changed(obj.(client.Object), false) },
			DeleteFunc: func(obj any) {
				if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = last.Obj
				}
				changed(obj.(client.Object), true)
			},
		},
	})
	go informer.RunWithContext(ctx)
	return informer.HasSynced
}
