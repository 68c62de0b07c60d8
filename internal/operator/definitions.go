package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/api/crds"
)

// FieldManager is the name under which this program writes to the API server.
const FieldManager = "trainyard"

// served is how long a definition may take from its installation to being served.
const served = 30 * time.Second

// holdUp is how long an API server delays the creation of objects whose kind it has just begun to serve, so that its peers know the
// kind by then, too.
const holdUp = 2 * time.Second

// definitions is access to the definitions of a cluster. It sends and reads no more of their schemas than it must: they are large,
// and a person waits.
type definitions struct{ rest.Interface }

// InstallDefinitions makes a cluster of one API server know the kinds of jobs, in the versions of this program, and returns when
// objects of them can be created. Such a server has no peers to wait for, so the definitions are dated back.
func InstallDefinitions(ctx context.Context, config *rest.Config) error {
	d, err := definitionsOf(config)
	if err != nil {
		return err
	}
	for _, resource := range crds.Resources() {
		text, err := fs.ReadFile(crds.Files, crds.File(resource))
		if err != nil {
			return fmt.Errorf("installing %s: %w", resource, err)
		}
		err = d.Patch(types.ApplyPatchType).AbsPath(pathOf(resource)).Param("fieldManager", FieldManager).Param("force", "true").Body(text).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("installing %s: %w", resource, err)
		}
	}
	return d.await(ctx, d.dateBack)
}

// AwaitDefinitions returns when the cluster serves all kinds of jobs, and takes new ones at once.
func AwaitDefinitions(ctx context.Context, config *rest.Config) error {
	d, err := definitionsOf(config)
	if err != nil {
		return err
	}
	return d.await(ctx, func(context.Context, schema.GroupResource, conditions) {})
}

func definitionsOf(config *rest.Config) (definitions, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return definitions{}, fmt.Errorf("finding the definitions: %w", err)
	}
	return definitions{client.RESTClient()}, nil
}

func pathOf(resource schema.GroupResource) string {
	return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + resource.String()
}

// await waits for each definition to be established for long enough; it hands those that are not yet to hurry.
func (d definitions) await(ctx context.Context, hurry func(context.Context, schema.GroupResource, conditions)) error {
	for _, resource := range crds.Resources() {
		var last error
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, served, true, func(ctx context.Context) (bool, error) {
			var now conditions
			if now, last = d.conditions(ctx, resource); last != nil || now.established() == nil {
				return false, nil
			}
			if time.Since(now.established().LastTransitionTime.Time) >= holdUp {
				return true, nil
			}
			hurry(ctx, resource, now)
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", resource, errors.Join(err, last))
		}
	}
	return nil
}

// conditions are what an API server says of a definition.
type conditions []apiextensionsv1.CustomResourceDefinitionCondition

func (d definitions) conditions(ctx context.Context, resource schema.GroupResource) (conditions, error) {
	text, err := d.Get().AbsPath(pathOf(resource)).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var crd struct {
		Status struct{ Conditions conditions }
	}
	err = json.Unmarshal(text, &crd)
	return crd.Status.Conditions, err
}

// established is the condition that says that a definition is served, nil where it is not.
func (all conditions) established() *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range all {
		if c := &all[i]; c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return c
		}
	}
	return nil
}

// dateBack says that a definition has been served for longer than it has. Where this fails, it is tried again.
func (d definitions) dateBack(ctx context.Context, resource schema.GroupResource, now conditions) {
	now.established().LastTransitionTime = metav1.NewTime(time.Now().Add(-2 * holdUp))
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": now}})
	if err == nil {
		_ = d.Patch(types.MergePatchType).AbsPath(pathOf(resource), "status").Body(patch).Do(ctx).Error()
	}
}
