// Package definition installs the definitions of our kinds on an API server, and waits until they are served.
package definition

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

// establishTimeout is how long a definition may take from its installation to being served.
const establishTimeout = 2 * time.Minute

// creationDelay is how long an API server delays the creation of objects whose kind it has just begun to serve, so that its peers
// know the kind by then, too.
const creationDelay = 2 * time.Second

// metadataOnly asks the API server not to send the definition back that it has just received.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// client reads and writes definitions. It transfers no more of their schemas than it must: they are large, and a person waits.
type client struct{ rest.Interface }

// Install makes a cluster of one API server serve the kinds of jobs, in the versions of this program, and returns when objects of
// them can be created and watched.
func Install(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) error {
	c, err := newClient(config)
	if err != nil {
		return err
	}
	var created []schema.GroupResource
	for _, resource := range crds.Resources() {
		isNew, err := c.install(ctx, resource)
		if err != nil {
			return fmt.Errorf("installing %s: %w", resource, err)
		}
		if isNew {
			created = append(created, resource)
		}
	}
	for _, resource := range crds.Resources() {
		version := scheme.PrioritizedVersionsForGroup(resource.Group)[0].Version
		err := poll(ctx, resource, func(ctx context.Context) error { return c.watchable(ctx, resource.WithVersion(version)) })
		if err != nil {
			return err
		}
	}
	for _, resource := range created {
		if err := poll(ctx, resource, func(ctx context.Context) error { return c.dateBack(ctx, resource) }); err != nil {
			return err
		}
	}
	return nil
}

// install applies one definition and reports whether it is new to the cluster.
func (c client) install(ctx context.Context, resource schema.GroupResource) (created bool, _ error) {
	text, err := fs.ReadFile(crds.Files, crds.File(resource))
	if err != nil {
		return false, err
	}
	status := 0
	err = c.Patch(types.ApplyPatchType).AbsPath(pathOf(resource)).Param("fieldManager", FieldManager).Param("force", "true").
		SetHeader("Accept", metadataOnly).Body(text).Do(ctx).StatusCode(&status).Error()
	return status == http.StatusCreated, err
}

// watchable returns without error when objects can be listed from the watch cache. That is a moment after they can be created,
// and a client whose watch is refused until then tries again only after a second.
func (c client) watchable(ctx context.Context, resource schema.GroupVersionResource) error {
	return c.Get().AbsPath("/apis", resource.Group, resource.Version, resource.Resource).Param("resourceVersion", "0").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").MaxRetries(0).Do(ctx).Error()
}

// Await returns when the cluster serves all kinds of jobs, and creates objects of them without a delay.
func Await(ctx context.Context, config *rest.Config) error {
	c, err := newClient(config)
	if err != nil {
		return err
	}
	for _, resource := range crds.Resources() {
		if err := poll(ctx, resource, func(ctx context.Context) error { return c.creatable(ctx, resource) }); err != nil {
			return err
		}
	}
	return nil
}

func newClient(config *rest.Config) (client, error) {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return client{}, fmt.Errorf("finding the definitions: %w", err)
	}
	return client{c.RESTClient()}, nil
}

func pathOf(resource schema.GroupResource) string {
	return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + resource.String()
}

// poll repeats a check of a definition until it succeeds.
func poll(ctx context.Context, resource schema.GroupResource, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, establishTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be served: %w", resource, errors.Join(err, last))
	}
	return nil
}

// errNotServed says that an API server does not serve a definition yet, or not for long enough.
var errNotServed = errors.New("it is not served yet")

// creatable returns without error when objects of a definition are created without a delay.
func (c client) creatable(ctx context.Context, resource schema.GroupResource) error {
	now, err := c.conditions(ctx, resource)
	if err != nil {
		return err
	}
	if e := now.established(); e == nil || time.Since(e.LastTransitionTime.Time) < creationDelay {
		return errNotServed
	}
	return nil
}

// conditions are those of a definition.
type conditions []apiextensionsv1.CustomResourceDefinitionCondition

func (c client) conditions(ctx context.Context, resource schema.GroupResource) (conditions, error) {
	text, err := c.Get().AbsPath(pathOf(resource)).DoRaw(ctx)
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

// dateBack writes that a definition has been served for longer than it has: a single API server has no peers for which it would
// have to delay the first object.
func (c client) dateBack(ctx context.Context, resource schema.GroupResource) error {
	now, err := c.conditions(ctx, resource)
	if err != nil {
		return err
	}
	established := now.established()
	if established == nil {
		return errNotServed
	}
	established.LastTransitionTime = metav1.NewTime(time.Now().Add(-2 * creationDelay))
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": now}})
	if err != nil {
		return err
	}
	return c.Patch(types.MergePatchType).AbsPath(pathOf(resource), "status").SetHeader("Accept", metadataOnly).Body(patch).Do(ctx).Error()
}
