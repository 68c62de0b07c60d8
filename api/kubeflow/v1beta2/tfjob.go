package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "kubeflow.org", Version: "v1beta2"}

var builder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme makes a scheme know the kinds of this package.
var AddToScheme = builder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TFJob{}, &TFJobList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// TFJob is a distributed TensorFlow training. Columns, subresources and rules are those of v1; api/crds copies them.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tfjobs,singular=tfjob
type TFJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec kubeflowv1.TFJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status kubeflowv1.JobStatus `json:"status,omitzero"`
}

// TFJobList is a list of TFJobs.
// +kubebuilder:object:root=true
type TFJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []TFJob `json:"items"`
}
