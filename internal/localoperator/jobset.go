package localoperator

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/trainyard/trainyard/internal/definition"
)

// offerJobSetToKueue gives the cluster the definition of JobSets as soon as somebody installs Kueue, which needs it. An API server needs most of a
// second of CPU for such a definition, so clusters without Kueue go without.
func offerJobSetToKueue(ctx context.Context, config *rest.Config) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("watching for Kueue: %w", err)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	kueue := fields.OneTermEqualSelector(metav1.ObjectNameField, "workloads.kueue.x-k8s.io").String()
	kueueInstalled := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = kueue
			return definitions.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = kueue
			return definitions.Watch(ctx, options)
		},
	}
	_, err = watchtools.UntilWithSync(ctx, kueueInstalled, &metav1.PartialObjectMetadata{}, nil, func(watch.Event) (bool, error) { return true, nil })
	if ctx.Err() != nil {
		return nil // the cluster stops
	}
	if err == nil {
		_, err = definition.OfferJobSet(ctx, config)
	}
	return err
}
