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

// InstallRuntimes gives the cluster the runtimes that come with this program. It must know their kind.
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
	for _, r := range shipped {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
		if err != nil {
			return fmt.Errorf("installing the runtime %s: %w", r.Name, err)
		}
		applied := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
		if err := c.Apply(ctx, applied, client.FieldOwner(definition.FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("installing the runtime %s: %w", r.Name, err)
		}
	}
	return nil
}
