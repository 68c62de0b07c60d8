// Package crds holds the CustomResourceDefinitions of every kind in api/, generated from the Go types and embedded, so that the
// installer, the local cluster and the tests use the same bytes.
package crds

//go:generate go tool -modfile=../../go.tools.mod controller-gen object crd:generateEmbeddedObjectMeta=true paths=../... output:crd:dir=.
//go:generate go run ./gen

import (
	"embed"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Files is the YAML of each definition, one file per kind.
//
//go:embed *_*.yaml
var Files embed.FS

// JobSet is the YAML of the definition of JobSets as their project publishes it. It is not ours: see definition.OfferJobSet.
//
//go:embed jobset/jobset.x-k8s.io_jobsets.yaml
var JobSet []byte

// Resources are the defined resources, by group and plural. They are read from the file names, in their order.
func Resources() []schema.GroupResource {
	entries, _ := Files.ReadDir(".")
	var all []schema.GroupResource
	for _, entry := range entries {
		group, plural, _ := strings.Cut(strings.TrimSuffix(entry.Name(), ".yaml"), "_")
		all = append(all, schema.GroupResource{Group: group, Resource: plural})
	}
	return all
}

// File is the file in Files that defines a resource.
func File(resource schema.GroupResource) string {
	return resource.Group + "_" + resource.Resource + ".yaml"
}

// All returns every definition, in the order of their file names.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := Files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing the embedded definitions: %w", err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		data, err := Files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", entry.Name(), err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("parsing the definition %s: %w", entry.Name(), err)
		}
		all = append(all, crd)
	}
	return all, nil
}
