package cluster

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// podMetadata caches the labels of pods once it watches them: the metrics API is built before the API server runs from which
// it reads them.
type podMetadata struct {
	lister atomic.Pointer[cache.GenericLister]
}

// watch begins to watch pods, also for another handler.
func (m *podMetadata) watch(ctx context.Context, admin *rest.Config, handler cache.ResourceEventHandler) error {
	client, err := metadata.NewForConfig(rest.AddUserAgent(rest.CopyConfig(admin), "trainyard-metrics"))
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	pods := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	lister := pods.Lister()
	m.lister.Store(&lister)
	_ = pods.Informer().SetTransform(func(o any) (any, error) {
		if pod, ok := o.(*metav1.PartialObjectMetadata); ok {
			pod.ManagedFields, pod.Annotations = nil, nil
		}
		return o, nil
	})
	if _, err := pods.Informer().AddEventHandler(handler); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	return nil
}

func (m *podMetadata) of(pod types.NamespacedName) (labels.Set, bool) {
	lister := m.lister.Load()
	if lister == nil {
		return nil, false
	}
	object, err := (*lister).ByNamespace(pod.Namespace).Get(pod.Name)
	if err != nil {
		return nil, false
	}
	return object.(metav1.Object).GetLabels(), true
}
