package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// TFJobKind is the kind's name.
	TFJobKind = "TFJob"
	// TFChief is the role whose end ends the job. There is at most one of Chief and Master together.
	TFChief ReplicaType = "Chief"
	// TFMaster is the older name of Chief.
	TFMaster ReplicaType = "Master"
	// TFPS is the role of the parameter servers.
	TFPS ReplicaType = "PS"
	// TFWorker is the role of the workers. Without a Chief the first Worker's end ends the job.
	TFWorker ReplicaType = "Worker"
	// TFEvaluator is the role of the evaluators.
	TFEvaluator ReplicaType = "Evaluator"
	// TFContainer is the name of the training container. Without a container of this name it is the first one.
	TFContainer = "tensorflow"
	// TFPortName is the name of the training container's port that the others connect to.
	TFPortName = "tfjob-port"
	// TFPort is that port's number where the template names none.
	TFPort int32 = 2222
)

// TFJob is a distributed TensorFlow training.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tfjobs,singular=tfjob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type TFJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +optional
	Spec TFJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status JobStatus `json:"status,omitzero"`
}

// TFJobSpec is what to train and how to run it.
type TFJobSpec struct {
	LifecyclePolicy `json:",inline"`

	// runPolicy says when the job ends, what is left of it, whether it may start, and who runs it. Unset means the default of each of
	// its fields.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// successPolicy says when a job without Chief and Master has succeeded: AllWorkers when every Worker has, empty when the first one
	// has. Defaults to empty.
	// +optional
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// tfReplicaSpecs is the roles of the job: Chief or Master, at most one, PS, Worker and Evaluator. The names may be written in any
	// letter case. The numbers of replicas may be changed while the job runs.
	TFReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"tfReplicaSpecs"`

	// enableDynamicWorker tells each Worker only of itself and the parameter servers, so that their number can change while the job
	// runs. Defaults to false.
	// +optional
	EnableDynamicWorker bool `json:"enableDynamicWorker,omitempty"`
}

// SuccessPolicy says when a TFJob without Chief and Master has succeeded.
// +kubebuilder:validation:Enum="";AllWorkers
type SuccessPolicy string

const (
	// SuccessPolicyDefault needs the first Worker.
	SuccessPolicyDefault SuccessPolicy = ""
	// SuccessPolicyAllWorkers needs every Worker.
	SuccessPolicyAllWorkers SuccessPolicy = "AllWorkers"
)

// TFJobList is a list of TFJobs.
// +kubebuilder:object:root=true
type TFJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []TFJob `json:"items"`
}
