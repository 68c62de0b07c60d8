// Package admission gives objects to an API server that has no cluster: what it does with one before it stores it, run by its own
// libraries over the embedded definitions. Tests of the API's rules use it.
package admission

import (
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/api/crds"
)

// admission is what an API server does with an object of one kind and version before it stores it, run by its own libraries.
type admission struct {
	schema    *structural.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

// admissions holds one admission per "<kind>.<version>". Building one takes a while, hence once for all tests.
var admissions = map[string]*admission{}

func admissionFor(t *testing.T, object *unstructured.Unstructured) *admission {
	t.Helper()
	gvk := object.GroupVersionKind()
	key := gvk.Kind + "." + gvk.Version
	if admissions[key] != nil {
		return admissions[key]
	}
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range definitions {
		if crd.Spec.Group == gvk.Group && crd.Spec.Names.Kind == gvk.Kind {
			admissions[key] = newAdmission(t, crd, gvk.Version)
			return admissions[key]
		}
	}
	t.Fatalf("no definition serves %s", gvk)
	return nil
}

func newAdmission(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version string) *admission {
	t.Helper()
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version && v.Served })
	if i < 0 {
		t.Fatalf("%s does not serve %s", crd.Name, version)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, props, nil); err != nil {
		t.Fatal(err)
	}
	schema, err := structural.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	return &admission{schema, validator, cel.NewValidator(schema, true, celconfig.PerCallLimit)}
}

// Admit gives an object to the API server. It returns what a person would read in the answer: the fields that would be dropped, and
// the errors. old is the stored object when this is an update, else nil. The object is changed as the API server would change it.
func Admit(t *testing.T, object, old *unstructured.Unstructured) (dropped, refusals []string) {
	t.Helper()
	a := admissionFor(t, object)
	dropped = pruning.PruneWithOptions(object.Object, a.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(object.Object, a.schema)
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	errs := validation.ValidateCustomResource(nil, object.Object, a.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, a.schema, object.Object)...)
	if len(errs) == 0 {
		errs, _ = a.rules.Validate(t.Context(), nil, a.schema, object.Object, before, celconfig.RuntimeCELCostBudget)
	}
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
