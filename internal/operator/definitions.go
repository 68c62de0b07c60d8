package operator

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/api/crds"
)

// FieldManager is the name under which this program writes to the API server.
const FieldManager = "trainyard"

// served is how long a definition may take from its installation to being served.
const served = 30 * time.Second

// InstallDefinitions makes the cluster know the kinds of jobs, in the versions of this program, and returns when it does.
func InstallDefinitions(ctx context.Context, config *rest.Config) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("installing the definitions: %w", err)
	}
	all, err := crds.All()
	if err != nil {
		return err
	}
	force := true
	for _, crd := range all {
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		text, err := yaml.Marshal(crd)
		if err != nil {
			return fmt.Errorf("installing %s: %w", crd.Name, err)
		}
		_, err = client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, crd.Name, types.ApplyPatchType, text,
			metav1.PatchOptions{FieldManager: FieldManager, Force: &force})
		if err != nil {
			return fmt.Errorf("installing %s: %w", crd.Name, err)
		}
	}
	return AwaitDefinitions(ctx, config)
}

// AwaitDefinitions returns when the cluster serves all kinds of jobs.
func AwaitDefinitions(ctx context.Context, config *rest.Config) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("waiting for the definitions: %w", err)
	}
	all, err := crds.All()
	if err != nil {
		return err
	}
	for _, crd := range all {
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, served, true, func(ctx context.Context) (bool, error) {
			now, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, crd.Name, metav1.GetOptions{})
			return err == nil && established(now), nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", crd.Name, err)
		}
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
