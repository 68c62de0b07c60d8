// Package admission says what an API server makes of an object of ours before it stores it, without one: its own libraries over the
// embedded definitions.
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

// Gate is where objects of one kind and version come in.
type Gate struct {
	// Schema is what the definition allows.
	Schema    *structural.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

// gates are those that were asked for, by kind and version: making one takes a while.
var gates sync.Map

// For is the gate of a kind; nil where no definition serves it.
func For(gvk schema.GroupVersionKind) (*Gate, error) {
	if gate, ok := gates.Load(gvk); ok {
		return gate.(*Gate), nil
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
			gate, err := newGate(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("reading the definition of %s: %w", gvk.Kind, err)
			}
			gates.Store(gvk, gate)
			return gate, nil
		}
	}
	return nil, nil
}

func newGate(definition *apiextensionsv1.JSONSchemaProps) (*Gate, error) {
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
	return &Gate{Schema: s, validator: validator, rules: cel.NewValidator(s, true, celconfig.PerCallLimit)}, nil
}

// Admit changes an object as the API server would, and tells the fields that it drops and what it refuses. old is the stored object
// when this is an update, else nil.
func (g *Gate) Admit(ctx context.Context, object, old *unstructured.Unstructured) (dropped []string, refusals field.ErrorList) {
	dropped, refusals = g.Shape(object)
	if len(refusals) == 0 {
		refusals = g.Rules(ctx, object, old)
	}
	return dropped, refusals
}

// Shape is the first half of Admit: everything but the definition's rules.
func (g *Gate) Shape(object *unstructured.Unstructured) (dropped []string, refusals field.ErrorList) {
	dropped = pruning.PruneWithOptions(object.Object, g.Schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, g.Schema)
	defaulting.Default(object.Object, g.Schema)
	refusals = validation.ValidateCustomResource(nil, object.Object, g.validator)
	return dropped, append(refusals, listtype.ValidateListSetsAndMaps(nil, g.Schema, object.Object)...)
}

// Rules is the other half, for an object of the right shape.
func (g *Gate) Rules(ctx context.Context, object, old *unstructured.Unstructured) field.ErrorList {
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	refusals, _ := g.rules.Validate(ctx, nil, g.Schema, object.Object, before, celconfig.RuntimeCELCostBudget)
	return refusals
}
