// Package admission prunes, defaults and validates an object of our kinds as an API server does before it stores it, but without an
// API server: it uses the same libraries and the embedded definitions.
package admission

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/trainyard/trainyard/api/crds"
)

// Validator checks objects of one kind and version.
type Validator struct {
	// Schema is what the definition allows.
	Schema          *structural.Structural
	schemaValidator validation.SchemaValidator
	rules           *cel.Validator
}

// validators is a cache by kind and version, because creating a validator is slow.
var validators sync.Map

// For returns the validator of a kind, or nil if no definition serves that kind.
func For(gvk schema.GroupVersionKind) (*Validator, error) {
	if v, ok := validators.Load(gvk); ok {
		return v.(*Validator), nil
	}
	definitions, err := crds.All()
	if err != nil {
		return nil, err
	}
	for _, crd := range definitions {
		for _, version := range crd.Spec.Versions {
			if crd.Spec.Group != gvk.Group || crd.Spec.Names.Kind != gvk.Kind || version.Name != gvk.Version || !version.Served {
				continue
			}
			v, err := newValidator(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("reading the definition of %s: %w", gvk.Kind, err)
			}
			validators.Store(gvk, v)
			return v, nil
		}
	}
	return nil, nil
}

func newValidator(definition *apiextensionsv1.JSONSchemaProps) (*Validator, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition, props, nil); err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	return &Validator{Schema: s, schemaValidator: validator, rules: cel.NewValidator(s, true, celconfig.PerCallLimit)}, nil
}

// Admit changes an object as the API server would, and returns the fields that it drops and what it refuses. old is the stored
// object if this is an update, else nil.
func (v *Validator) Admit(ctx context.Context, object, old *unstructured.Unstructured) (dropped []string, refusals field.ErrorList) {
	dropped, refusals = v.Shape(object)
	if len(refusals) == 0 {
		refusals = v.Rules(ctx, object, old)
	}
	return dropped, refusals
}

// Shape is the first half of Admit: everything except the definition's CEL rules.
func (v *Validator) Shape(object *unstructured.Unstructured) (dropped []string, refusals field.ErrorList) {
	dropped = pruning.PruneWithOptions(object.Object, v.Schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, v.Schema)
	defaulting.Default(object.Object, v.Schema)
	refusals = validation.ValidateCustomResource(nil, object.Object, v.schemaValidator)
	return dropped, append(refusals, listtype.ValidateListSetsAndMaps(nil, v.Schema, object.Object)...)
}

// Rules is the second half of Admit: the CEL rules. The object must have passed Shape.
func (v *Validator) Rules(ctx context.Context, object, old *unstructured.Unstructured) field.ErrorList {
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	refusals, _ := v.rules.Validate(ctx, nil, v.Schema, object.Object, before, celconfig.RuntimeCELCostBudget)
	return refusals
}
