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
	// TFPort is that port's number if the template names none.
	TFPort int32 = 2222
)

// TFLayout is how a TFJob is written.
var TFLayout = Layout{
	Kind: TFJobKind, ReplicaSpecs: "tfReplicaSpecs", Roles: []ReplicaType{TFChief, TFMaster, TFPS, TFWorker, TFEvaluator},
	Container: TFContainer, PortName: TFPortName, Port: TFPort, RestartPolicy: RestartPolicyNever,
}

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
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata.name",message="the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.tfReplicaSpecs.all(role, self.spec.tfReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.tfReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",optionalOldSelf=true,fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (42 characters always fit)"
// +kubebuilder:validation:XValidation:rule="self.spec.tfReplicaSpecs.all(role, self.spec.tfReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.tfReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61) || !oldSelf.spec.tfReplicaSpecs.all(role, oldSelf.spec.tfReplicaSpecs[role].?replicas.orValue(1) == 0 || size(oldSelf.metadata.name) + size(role) + size(string(oldSelf.spec.tfReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (42 characters always fit)"
type TFJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec TFJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status JobStatus `json:"status,omitzero"`
}

// TFJobSpec is what to train and how to run it.
type TFJobSpec struct {
	FlatPolicy `json:",inline"`

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
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.lowerAscii() in ['chief', 'master', 'ps', 'worker', 'evaluator'])",messageExpression="'unknown role ' + self.filter(role, !(role.lowerAscii() in ['chief', 'master', 'ps', 'worker', 'evaluator']))[0] + ': use Chief, Master, PS, Worker or Evaluator'"
	// +kubebuilder:validation:XValidation:rule="['chief', 'master', 'ps', 'worker', 'evaluator'].all(name, self.filter(role, role.lowerAscii() == name).size() <= 1)",message="a role is set twice, in different letter case: keep one of them"
	// +kubebuilder:validation:XValidation:rule="self.exists(role, role.lowerAscii() in ['chief', 'master', 'worker'] && self[role].?replicas.orValue(1) > 0)",message="the job has no replica whose end could end it: add a Chief, a Master or a Worker with replicas of at least 1"
	// +kubebuilder:validation:XValidation:rule="self.filter(role, role.lowerAscii() in ['chief', 'master']).map(role, self[role].?replicas.orValue(1)).sum() <= 1",message="a TFJob has at most one Chief or Master together: set the replicas of one to 1, remove the other, and make the others Workers"
	// +required
	TFReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"tfReplicaSpecs"`

	// enableDynamicWorker puts only the Worker itself, the Chief or Master and the parameter servers into a Worker's TF_CONFIG, so that the
	// number of Workers can change while the job runs. Defaults to false.
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

// Parts are what jobs of every kind have.
func (job *TFJob) Parts() Parts {
	spec := &job.Spec
	return Parts{TFLayout, &spec.RunPolicy, &spec.FlatPolicy, &spec.TFReplicaSpecs, &job.Status}
}

// SetDefaults fills in what the manifest leaves out; see Job.
func (job *TFJob) SetDefaults() {
	job.Parts().setDefaults()
	if job.Spec.SuccessPolicy == nil {
		job.Spec.SuccessPolicy = new(SuccessPolicyDefault)
	}
}
