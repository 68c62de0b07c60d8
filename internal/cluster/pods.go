package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// lateLabels knows the labels of pods once it watches them: the metrics API is made before the API server that it needs for
// that runs.
type lateLabels struct {
	lister atomic.Pointer[cache.GenericLister]
}

// watch begins to watch, and tells hasten of pods that are to end sooner than it was said at first.
func (l *lateLabels) watch(ctx context.Context, admin *rest.Config, hasten func(pod string, grace time.Duration)) error {
	client, err := metadata.NewForConfig(rest.AddUserAgent(rest.CopyConfig(admin), "trainyard-metrics"))
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	pods := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	lister := pods.Lister()
	l.lister.Store(&lister)
	_ = pods.Informer().SetTransform(func(o any) (any, error) {
		if pod, ok := o.(*metav1.PartialObjectMetadata); ok {
			pod.ManagedFields, pod.Annotations = nil, nil
		}
		return o, nil
	})
	if _, err := pods.Informer().AddEventHandler(hurried(hasten)); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	return nil
}

// hurried tells of pods whose time to end is cut short, or that are taken away while they have some. Kubelet goes on with the time
// that it began with, so that `kubectl delete --force` would free nothing, least of all a GPU.
func hurried(hasten func(pod string, grace time.Duration)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, now any) {
			before, after := old.(metav1.Object).GetDeletionGracePeriodSeconds(), now.(metav1.Object).GetDeletionGracePeriodSeconds()
			if before != nil && after != nil && *after < *before {
				hasten(string(now.(metav1.Object).GetUID()), time.Duration(*after)*time.Second)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if pod, ok := obj.(metav1.Object); ok {
				hasten(string(pod.GetUID()), 0)
			}
		},
	}
}

func (l *lateLabels) of(pod types.NamespacedName) (labels.Set, bool) {
	lister := l.lister.Load()
	if lister == nil {
		return nil, false
	}
	object, err := (*lister).ByNamespace(pod.Namespace).Get(pod.Name)
	if err != nil {
		return nil, false
	}
	return object.(metav1.Object).GetLabels(), true
}
