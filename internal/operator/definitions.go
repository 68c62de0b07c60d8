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

// holdUp is how long an API server delays the creation of objects whose kind it has just begun to serve, so that its peers know the
// kind by then, too.
const holdUp = 2 * time.Second

// InstallDefinitions makes a cluster of one API server know the kinds of jobs, in the versions of this program, and returns when
// objects of them can be created. Such a server has no peers to wait for, so the definitions are dated back.
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
	return await(ctx, client, func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) {
		established(crd).LastTransitionTime = metav1.NewTime(time.Now().Add(-2 * holdUp))
		_, _ = client.ApiextensionsV1().CustomResourceDefinitions().UpdateStatus(ctx, crd, metav1.UpdateOptions{}) // else it is tried again
	})
}

// AwaitDefinitions returns when the cluster serves all kinds of jobs, and takes new ones at once.
func AwaitDefinitions(ctx context.Context, config *rest.Config) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("waiting for the definitions: %w", err)
	}
	return await(ctx, client, func(context.Context, *apiextensionsv1.CustomResourceDefinition) {})
}

// await waits for each definition to be established for long enough; it hands those that are not yet to hurry.
func await(ctx context.Context, client clientset.Interface, hurry func(context.Context, *apiextensionsv1.CustomResourceDefinition)) error {
	all, err := crds.All()
	if err != nil {
		return err
	}
	for _, crd := range all {
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, served, true, func(ctx context.Context) (bool, error) {
			now, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, crd.Name, metav1.GetOptions{})
			if err != nil || established(now) == nil {
				return false, nil
			}
			if time.Since(established(now).LastTransitionTime.Time) >= holdUp {
				return true, nil
			}
			hurry(ctx, now)
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", crd.Name, err)
		}
	}
	return nil
}

// established is the condition that says that a definition is served, nil where it is not.
func established(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		if c := &crd.Status.Conditions[i]; c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return c
		}
	}
	return nil
}
