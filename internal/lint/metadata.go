package lint

import (
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
)

var (
	text  = structural.Structural{Generic: structural.Generic{Type: "string"}}
	texts = structural.Structural{
		Generic:              structural.Generic{Type: "object"},
		AdditionalProperties: &structural.StructuralOrBool{Structural: &text},
	}
	list     = structural.Structural{Generic: structural.Generic{Type: "array"}, Items: &text}
	anything = structural.Structural{Extensions: structural.Extensions{XPreserveUnknownFields: true}}
)

// metadataSchema is the schema of metadata, which definitions do not have: the API server knows it.
var metadataSchema = structural.Structural{
	Generic: structural.Generic{Type: "object"},
	Properties: map[string]structural.Structural{
		"name": text, "generateName": text, "namespace": text, "labels": texts, "annotations": texts, "finalizers": list,
		"uid": text, "resourceVersion": text, "selfLink": text, "ownerReferences": anything, "managedFields": anything, "generation": anything,
		"creationTimestamp": anything, "deletionTimestamp": anything, "deletionGracePeriodSeconds": anything,
	},
}

// withMetadata is the schema of an object with that of its metadata.
func withMetadata(s *structural.Structural) *structural.Structural {
	whole := *s
	whole.Properties = map[string]structural.Structural{}
	for name, property := range s.Properties {
		whole.Properties[name] = property
	}
	whole.Properties["metadata"] = metadataSchema
	return &whole
}

// unknownMetadata drops the fields that metadata does not have.
func unknownMetadata(object *unstructured.Unstructured) []string {
	metadata, isMap := object.Object["metadata"].(map[string]any)
	if !isMap {
		return nil
	}
	var dropped []string
	for _, path := range pruning.PruneWithOptions(metadata, &metadataSchema, false, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		dropped = append(dropped, "metadata."+path)
	}
	return dropped
}

// metadataRefusals are the API server's errors on labels, annotations and the like. The definitions have their own rules on names.
func metadataRefusals(object *unstructured.Unstructured) field.ErrorList {
	named := object.DeepCopy()
	clusterWide := object.GetKind() == trainer.ClusterTrainingRuntimeKind
	if named.GetNamespace() == "" && !clusterWide {
		named.SetNamespace(metav1.NamespaceDefault)
	}
	return validation.ValidateObjectMetaAccessor(named, !clusterWide, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}
