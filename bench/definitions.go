package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/api/crds"
)

// define makes the API server serve the definitions of these files, or ours: what a definition validates is part of what each write
// costs, and a peer must not pay for ours.
func (w *world) define(ctx context.Context, files []string) error {
	resource := schema.GroupResource{Group: "kubeflow.org", Resource: "pytorchjobs"}
	text, err := fs.ReadFile(crds.Files, crds.File(resource))
	if len(files) > 0 {
		text, err = os.ReadFile(files[0])
	}
	if err != nil {
		return err
	}
	var want, now unstructured.Unstructured
	if err := yaml.Unmarshal(text, &want.Object); err != nil {
		return err
	}
	now.SetGroupVersionKind(want.GroupVersionKind())
	if err := w.client.Get(ctx, client.ObjectKey{Name: resource.String()}, &now); err != nil {
		return err
	}
	generation := now.GetGeneration()
	before, err := w.openAPI()
	if err != nil {
		return err
	}
	now.Object["spec"] = want.Object["spec"]
	if err := w.client.Update(ctx, &now); err != nil || now.GetGeneration() == generation {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if after, err := w.openAPI(); err != nil || after != before {
			return err
		}
	}
	return errors.New("the API server does not serve the new definition of PyTorchJob")
}

// openAPI is an address that changes with the definitions of our group.
func (w *world) openAPI() (string, error) {
	c, err := discovery.NewDiscoveryClientForConfig(w.config(driver))
	if err != nil {
		return "", err
	}
	paths, err := c.OpenAPIV3().Paths()
	if err != nil {
		return "", fmt.Errorf("reading what the API server serves: %w", err)
	}
	if paths["apis/kubeflow.org/v1"] == nil {
		return "", errors.New("the API server does not serve kubeflow.org/v1")
	}
	return paths["apis/kubeflow.org/v1"].ServerRelativeURL(), nil
}
