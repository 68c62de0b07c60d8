package v2beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "kubeflow.org", Version: "v2beta1"}

var builder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme makes a scheme know the kinds of this package.
var AddToScheme = builder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MPIJob{}, &MPIJobList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// MPIJob is a distributed training whose processes are started by mpirun. Columns, subresources and rules are those of v1; api/crds copies them.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=mpijobs,singular=mpijob
type MPIJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec kubeflowv1.MPIJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status kubeflowv1.JobStatus `json:"status,omitzero"`
}

// MPIJobList is a list of MPIJobs.
// +kubebuilder:object:root=true
type MPIJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []MPIJob `json:"items"`
}
