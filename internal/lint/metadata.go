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

// metadataSchema is what metadata may have: definitions leave that to the API server.
var metadataSchema = structural.Structural{
	Generic: structural.Generic{Type: "object"},
	Properties: map[string]structural.Structural{
		"name": text, "generateName": text, "namespace": text, "labels": texts, "annotations": texts, "finalizers": list,
		"uid": text, "resourceVersion": text, "selfLink": text, "ownerReferences": anything, "managedFields": anything, "generation": anything,
		"creationTimestamp": anything, "deletionTimestamp": anything, "deletionGracePeriodSeconds": anything,
	},
}

// withMetadata is the schema of an object, metadata and all.
func withMetadata(s *structural.Structural) *structural.Structural {
	whole := *s
	whole.Properties = map[string]structural.Structural{}
	for name, property := range s.Properties {
		whole.Properties[name] = property
	}
	whole.Properties["metadata"] = metadataSchema
	return &whole
}

// unknownMetadata drops the fields that no metadata has.
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

// metadataRefusals are the API server's for labels, annotations and the like. On names the definitions have rules of their own.
func metadataRefusals(object *unstructured.Unstructured) field.ErrorList {
	named := object.DeepCopy()
	clusterWide := object.GetKind() == trainer.ClusterTrainingRuntimeKind
	if named.GetNamespace() == "" && !clusterWide {
		named.SetNamespace(metav1.NamespaceDefault)
	}
	return validation.ValidateObjectMetaAccessor(named, !clusterWide, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}
