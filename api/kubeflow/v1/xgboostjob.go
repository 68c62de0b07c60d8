package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// XGBoostJobKind is the kind's name.
	XGBoostJobKind = "XGBoostJob"
	// XGBoostMaster is the role whose end ends the job. There is exactly one.
	XGBoostMaster ReplicaType = "Master"
	// XGBoostWorker is the role of all others.
	XGBoostWorker ReplicaType = "Worker"
	// XGBoostContainer is the name of the training container. Without a container of this name it is the first one.
	XGBoostContainer = "xgboost"
	// XGBoostPortName is the name of the training container's port that the others connect to.
	XGBoostPortName = "xgboostjob-port"
	// XGBoostPort is that port's number where the template names none.
	XGBoostPort int32 = 9999
)

// XGBoostLayout is how an XGBoostJob is written.
var XGBoostLayout = Layout{
	Kind: XGBoostJobKind, ReplicaSpecs: "xgbReplicaSpecs", Roles: []ReplicaType{XGBoostMaster, XGBoostWorker},
	Container: XGBoostContainer, PortName: XGBoostPortName, Port: XGBoostPort, PortVariables: []string{"MASTER_PORT", "DMLC_TRACKER_PORT"},
	RestartPolicy: RestartPolicyNever,
}

// XGBoostJob is a distributed XGBoost training.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=xgboostjobs,singular=xgboostjob
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata.name",message="the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.xgbReplicaSpecs.all(role, self.spec.xgbReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.xgbReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",optionalOldSelf=true,fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
// +kubebuilder:validation:XValidation:rule="self.spec.xgbReplicaSpecs.all(role, self.spec.xgbReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.xgbReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61) || !oldSelf.spec.xgbReplicaSpecs.all(role, oldSelf.spec.xgbReplicaSpecs[role].?replicas.orValue(1) == 0 || size(oldSelf.metadata.name) + size(role) + size(string(oldSelf.spec.xgbReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
type XGBoostJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec XGBoostJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status JobStatus `json:"status,omitzero"`
}

// XGBoostJobSpec is what to train and how to run it.
type XGBoostJobSpec struct {
	FlatPolicy `json:",inline"`

	// runPolicy says when the job ends, what is left of it, whether it may start, and who runs it. Unset means the default of each of
	// its fields.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// xgbReplicaSpecs is the roles of the job: Master, exactly one, and Worker. The names may be written in any letter case. The number
	// of Workers may be changed while the job runs.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.lowerAscii() in ['master', 'worker'])",messageExpression="'unknown role ' + self.filter(role, !(role.lowerAscii() in ['master', 'worker']))[0] + ': use Master or Worker'"
	// +kubebuilder:validation:XValidation:rule="['master', 'worker'].all(name, self.filter(role, role.lowerAscii() == name).size() <= 1)",message="a role is there twice, in different letter case: keep one of them"
	// +kubebuilder:validation:XValidation:rule="self.exists(role, role.lowerAscii() == 'master' && self[role].?replicas.orValue(1) == 1)",message="an XGBoostJob has exactly one Master: add the role Master with replicas 1"
	// +required
	XGBReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"xgbReplicaSpecs"`
}

// XGBoostJobList is a list of XGBoostJobs.
// +kubebuilder:object:root=true
type XGBoostJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []XGBoostJob `json:"items"`
}

// Parts are what jobs of every kind have.
func (job *XGBoostJob) Parts() Parts {
	spec := &job.Spec
	return Parts{XGBoostLayout, &spec.RunPolicy, &spec.FlatPolicy, &spec.XGBReplicaSpecs, &job.Status}
}

// SetDefaults fills in what the manifest leaves out; see Job.
func (job *XGBoostJob) SetDefaults() { job.Parts().setDefaults() }
