package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/api/crds"
)

// define makes the API server serve the definitions of these files, and ours of every other kind: what a definition validates is part of
// what each write costs, and a peer must not pay for ours.
func (w *world) define(ctx context.Context, files []string) error {
	want := map[string]*unstructured.Unstructured{}
	for _, resource := range crds.Resources() {
		text, err := fs.ReadFile(crds.Files, crds.File(resource))
		if err != nil {
			return err
		}
		if err := addDefinition(want, text); err != nil {
			return err
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := addDefinition(want, text); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := w.replaceDefinition(ctx, want[name]); err != nil {
			return fmt.Errorf("defining %s: %w", name, err)
		}
	}
	return nil
}

func addDefinition(to map[string]*unstructured.Unstructured, text []byte) error {
	var definition unstructured.Unstructured
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		return err
	}
	to[definition.GetName()] = &definition
	return nil
}

// replaceDefinition creates or changes a definition, and waits until the API server serves it.
func (w *world) replaceDefinition(ctx context.Context, want *unstructured.Unstructured) error {
	group, _, err := unstructured.NestedString(want.Object, "spec", "group")
	if err != nil {
		return err
	}
	before, err := w.openAPI(group)
	if err != nil {
		return err
	}
	changed, err := w.writeDefinition(ctx, want)
	if err != nil || !changed {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if after, err := w.openAPI(group); err != nil || !slices.Equal(after, before) {
			return err
		}
	}
	return errors.New("the API server does not serve it")
}

// writeDefinition writes a definition, and reports whether it is another than before.
func (w *world) writeDefinition(ctx context.Context, want *unstructured.Unstructured) (changed bool, err error) {
	var now unstructured.Unstructured
	now.SetGroupVersionKind(want.GroupVersionKind())
	switch err := w.client.Get(ctx, client.ObjectKeyFromObject(want), &now); {
	case apierrors.IsNotFound(err):
		return true, w.client.Create(ctx, want)
	case err != nil:
		return false, err
	}
	generation := now.GetGeneration()
	now.Object["spec"] = want.Object["spec"]
	err = w.client.Update(ctx, &now)
	return now.GetGeneration() != generation, err
}

// openAPI are addresses that change with the definitions of a group.
func (w *world) openAPI(group string) ([]string, error) {
	c, err := discovery.NewDiscoveryClientForConfig(w.config(driver))
	if err != nil {
		return nil, err
	}
	paths, err := c.OpenAPIV3().Paths()
	if err != nil {
		return nil, fmt.Errorf("reading what the API server serves: %w", err)
	}
	var all []string
	for path, version := range paths {
		if strings.HasPrefix(path, "apis/"+group+"/") {
			all = append(all, version.ServerRelativeURL())
		}
	}
	slices.Sort(all)
	return all, nil
}
