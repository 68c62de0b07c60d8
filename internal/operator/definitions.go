package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
const served = 2 * time.Minute

// holdUp is how long an API server delays the creation of objects whose kind it has just begun to serve, so that its peers know the
// kind by then, too.
const holdUp = 2 * time.Second

// briefly asks the API server not to answer with all that it was just told.
const briefly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// definitions is access to the definitions of a cluster. It sends and reads no more of their schemas than it must: they are large,
// and a person waits.
type definitions struct{ rest.Interface }

// InstallDefinitions makes a cluster of one API server know the kinds of jobs, in the versions of this program, and returns when
// objects of them can be created and watched.
func InstallDefinitions(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) error {
	d, err := definitionsOf(config)
	if err != nil {
		return err
	}
	var created []schema.GroupResource
	for _, resource := range crds.Resources() {
		isNew, err := d.install(ctx, resource)
		if err != nil {
			return fmt.Errorf("installing %s: %w", resource, err)
		}
		if isNew {
			created = append(created, resource)
		}
	}
	for _, resource := range crds.Resources() {
		version := scheme.PrioritizedVersionsForGroup(resource.Group)[0].Version
		err := poll(ctx, resource, func(ctx context.Context) error { return d.watchable(ctx, resource.WithVersion(version)) })
		if err != nil {
			return err
		}
	}
	for _, resource := range created {
		if err := poll(ctx, resource, func(ctx context.Context) error { return d.dateBack(ctx, resource) }); err != nil {
			return err
		}
	}
	return nil
}

// install brings one definition and tells whether it was not there before.
func (d definitions) install(ctx context.Context, resource schema.GroupResource) (created bool, _ error) {
	text, err := fs.ReadFile(crds.Files, crds.File(resource))
	if err != nil {
		return false, err
	}
	status := 0
	err = d.Patch(types.ApplyPatchType).AbsPath(pathOf(resource)).Param("fieldManager", FieldManager).Param("force", "true").
		SetHeader("Accept", briefly).Body(text).Do(ctx).StatusCode(&status).Error()
	return status == http.StatusCreated, err
}

// watchable returns without error when objects can be listed from where watches are served. That comes a moment after they can
// be created, and a client whose watch is refused meanwhile tries again only after a second.
func (d definitions) watchable(ctx context.Context, resource schema.GroupVersionResource) error {
	return d.Get().AbsPath("/apis", resource.Group, resource.Version, resource.Resource).Param("resourceVersion", "0").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").MaxRetries(0).Do(ctx).Error()
}

// AwaitDefinitions returns when the cluster serves all kinds of jobs, and takes new ones at once.
func AwaitDefinitions(ctx context.Context, config *rest.Config) error {
	d, err := definitionsOf(config)
	if err != nil {
		return err
	}
	for _, resource := range crds.Resources() {
		if err := poll(ctx, resource, func(ctx context.Context) error { return d.settled(ctx, resource) }); err != nil {
			return err
		}
	}
	return nil
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

// poll asks until a definition answers as it is wanted.
func poll(ctx context.Context, resource schema.GroupResource, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, served, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be served: %w", resource, errors.Join(err, last))
	}
	return nil
}

// errNotServed says that an API server has not told yet that it serves a definition, or only just has.
var errNotServed = errors.New("it is not served yet")

// settled returns without error when a definition is served for long enough.
func (d definitions) settled(ctx context.Context, resource schema.GroupResource) error {
	now, err := d.conditions(ctx, resource)
	if err != nil {
		return err
	}
	if c := now.established(); c == nil || time.Since(c.LastTransitionTime.Time) < holdUp {
		return errNotServed
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

// dateBack says that a definition has been served for longer than it has: one API server has no peers to hold up the first
// object for.
func (d definitions) dateBack(ctx context.Context, resource schema.GroupResource) error {
	now, err := d.conditions(ctx, resource)
	if err != nil {
		return err
	}
	c := now.established()
	if c == nil {
		return errNotServed
	}
	c.LastTransitionTime = metav1.NewTime(time.Now().Add(-2 * holdUp))
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": now}})
	if err != nil {
		return err
	}
	return d.Patch(types.MergePatchType).AbsPath(pathOf(resource), "status").SetHeader("Accept", briefly).Body(patch).Do(ctx).Error()
}
