package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// JAXJobKind is the kind's name.
	JAXJobKind = "JAXJob"
	// JAXWorker is the only role. The first Worker is the coordinator.
	JAXWorker ReplicaType = "Worker"
	// JAXContainer is the name of the training container. Without a container of this name it is the first one.
	JAXContainer = "jax"
	// JAXPortName is the name of the training container's port that the others connect to.
	JAXPortName = "jaxjob-port"
	// JAXPort is that port's number where the template names none.
	JAXPort int32 = 6666
)

// JAXLayout is how a JAXJob is written.
var JAXLayout = Layout{
	Kind: JAXJobKind, ReplicaSpecs: "jaxReplicaSpecs", Roles: []ReplicaType{JAXWorker},
	Container: JAXContainer, PortName: JAXPortName, Port: JAXPort, PortVariables: []string{"COORDINATOR_PORT"},
	RestartPolicy: RestartPolicyNever,
}

// JAXJob is a distributed JAX training.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jaxjobs,singular=jaxjob
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.jaxReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata.name",message="the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.jaxReplicaSpecs.all(role, self.spec.jaxReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.jaxReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",optionalOldSelf=true,fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
// +kubebuilder:validation:XValidation:rule="self.spec.jaxReplicaSpecs.all(role, self.spec.jaxReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.jaxReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61) || !oldSelf.spec.jaxReplicaSpecs.all(role, oldSelf.spec.jaxReplicaSpecs[role].?replicas.orValue(1) == 0 || size(oldSelf.metadata.name) + size(role) + size(string(oldSelf.spec.jaxReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
type JAXJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec JAXJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status JobStatus `json:"status,omitzero"`
}

// JAXJobSpec is what to train and how to run it.
type JAXJobSpec struct {
	FlatPolicy `json:",inline"`

	// runPolicy says when the job ends, what is left of it, whether it may start, and who runs it. Unset means the default of each of
	// its fields.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// jaxReplicaSpecs is the roles of the job. There is one, Worker, whose name may be written in any letter case. The first Worker
	// is the coordinator. The number of replicas may be changed while the job runs.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.lowerAscii() in ['worker'])",messageExpression="'unknown role ' + self.filter(role, !(role.lowerAscii() in ['worker']))[0] + ': use Worker'"
	// +kubebuilder:validation:XValidation:rule="['worker'].all(name, self.filter(role, role.lowerAscii() == name).size() <= 1)",message="a role is there twice, in different letter case: keep one of them"
	// +kubebuilder:validation:XValidation:rule="self.exists(role, self[role].?replicas.orValue(1) > 0)",message="the job has no replicas: add a Worker with replicas of at least 1"
	// +required
	JAXReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"jaxReplicaSpecs"`
}

// JAXJobList is a list of JAXJobs.
// +kubebuilder:object:root=true
type JAXJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []JAXJob `json:"items"`
}

// Parts are what jobs of every kind have.
func (job *JAXJob) Parts() Parts {
	spec := &job.Spec
	return Parts{JAXLayout, &spec.RunPolicy, &spec.FlatPolicy, &spec.JAXReplicaSpecs, &job.Status}
}

// SetDefaults fills in what the manifest leaves out; see Job.
func (job *JAXJob) SetDefaults() { job.Parts().setDefaults() }
