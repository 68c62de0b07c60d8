// Package admission gives manifests to an API server that has no cluster. Tests of the API's rules use it.
package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/admission"
)

// Admit gives an object to the API server. It returns what a person would read in the answer: the fields that would be dropped, and
// the errors. old is the stored object when this is an update, else nil. The object is changed as the API server would change it.
func Admit(t *testing.T, object, old *unstructured.Unstructured) (dropped, refusals []string) {
	t.Helper()
	validator, err := admission.For(object.GroupVersionKind())
	if err != nil || validator == nil {
		t.Fatalf("no definition serves %s: %v", object.GroupVersionKind(), err)
	}
	dropped, errs := validator.Admit(t.Context(), object, old)
	for _, err := range errs {
		refusals = append(refusals, err.Error())
	}
	return dropped, refusals
}

// Parse reads a manifest in YAML.
func Parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatalf("parsing the manifest: %v\n%s", err, manifest)
	}
	return object
}
