package localoperator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/definition"
	"github.com/trainyard/trainyard/internal/runtimes"
)

// InstallRuntimes gives the cluster the runtimes that come with this program, and what the Kubeflow SDK looks for besides them. The
// cluster must know the kind of the runtimes.
func InstallRuntimes(ctx context.Context, config *rest.Config) error {
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("installing the runtimes: %w", err)
	}
	shipped, err := runtimes.Shipped()
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, r := range shipped {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
		if err != nil {
			return fmt.Errorf("installing the runtime %s: %w", r.Name, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	documents, err := runtimes.ForSDK()
	if err != nil {
		return err
	}
	for _, doc := range documents {
		objects = append(objects, doc.Object)
	}
	for _, obj := range objects {
		applied := client.ApplyConfigurationFromUnstructured(obj)
		if err := c.Apply(ctx, applied, client.FieldOwner(definition.FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("installing the %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}
