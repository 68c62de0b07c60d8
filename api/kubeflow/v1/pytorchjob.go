package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// PyTorchJobKind is the kind's name.
	PyTorchJobKind = "PyTorchJob"
	// PyTorchMaster is the role whose end ends the job. There is at most one.
	PyTorchMaster ReplicaType = "Master"
	// PyTorchWorker is the role of all others.
	PyTorchWorker ReplicaType = "Worker"
	// PyTorchContainer is the name of the training container. Without a container of this name it is the first one.
	PyTorchContainer = "pytorch"
	// PyTorchPortName is the name of the training container's port that the others connect to.
	PyTorchPortName = "pytorchjob-port"
	// PyTorchPort is that port's number if the template names none.
	PyTorchPort int32 = 23456
)

// PyTorchLayout is how a PyTorchJob is written.
var PyTorchLayout = Layout{
	Kind: PyTorchJobKind, ReplicaSpecs: "pytorchReplicaSpecs", Roles: []ReplicaType{PyTorchMaster, PyTorchWorker},
	Container: PyTorchContainer, PortName: PyTorchPortName, Port: PyTorchPort, PortVariables: []string{"MASTER_PORT", "PET_MASTER_PORT"},
	RestartPolicy: RestartPolicyOnFailure,
}

// PyTorchJob is a distributed PyTorch training.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=pytorchjobs,singular=pytorchjob
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.pytorchReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata.name",message="the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.pytorchReplicaSpecs.all(role, size(self.metadata.name) + size(role) + size(string([1, self.spec.pytorchReplicaSpecs[role].?replicas.orValue(1), role.lowerAscii() == 'worker' ? self.spec.?elasticPolicy.?maxReplicas.orValue(1) : 1].max() - 1)) <= 61)",optionalOldSelf=true,fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
// +kubebuilder:validation:XValidation:rule="self.spec.pytorchReplicaSpecs.all(role, size(self.metadata.name) + size(role) + size(string([1, self.spec.pytorchReplicaSpecs[role].?replicas.orValue(1), role.lowerAscii() == 'worker' ? self.spec.?elasticPolicy.?maxReplicas.orValue(1) : 1].max() - 1)) <= 61) || !oldSelf.spec.pytorchReplicaSpecs.all(role, size(oldSelf.metadata.name) + size(role) + size(string([1, oldSelf.spec.pytorchReplicaSpecs[role].?replicas.orValue(1), role.lowerAscii() == 'worker' ? oldSelf.spec.?elasticPolicy.?maxReplicas.orValue(1) : 1].max() - 1)) <= 61)",fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
type PyTorchJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec PyTorchJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status JobStatus `json:"status,omitzero"`
}

// PyTorchJobSpec is what to train and how to run it.
// +kubebuilder:validation:XValidation:rule="!has(self.elasticPolicy) || self.pytorchReplicaSpecs.exists(role, role.lowerAscii() == 'worker')",message="elasticPolicy is about Workers and the job has none: add the role Worker to pytorchReplicaSpecs"
// +kubebuilder:validation:XValidation:rule="size(self.?elasticPolicy.?metrics.orValue([])) == 0 || 'Worker' in self.pytorchReplicaSpecs || !self.pytorchReplicaSpecs.exists(role, role.lowerAscii() == 'worker')",message="with elasticPolicy.metrics the role must be spelled Worker: the autoscaler finds the number of replicas under that name only"
// +kubebuilder:validation:XValidation:rule="!has(self.nprocPerNode) || !has(self.elasticPolicy) || !has(self.elasticPolicy.nProcPerNode)",message="spec.nprocPerNode and spec.elasticPolicy.nProcPerNode are the same setting: remove spec.elasticPolicy.nProcPerNode"
type PyTorchJobSpec struct {
	FlatPolicy `json:",inline"`

	// runPolicy says when the job ends, what is left of it, whether it may start, and who runs it. Unset means the default of each of
	// its fields.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// pytorchReplicaSpecs is the roles of the job: Master, at most one, and Worker. The names may be written in any letter case. Without
	// a Master the first Worker leads. The numbers of replicas may be changed while the job runs.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.lowerAscii() in ['master', 'worker'])",messageExpression="'unknown role ' + self.filter(role, !(role.lowerAscii() in ['master', 'worker']))[0] + ': use Master or Worker'"
	// +kubebuilder:validation:XValidation:rule="['master', 'worker'].all(name, self.filter(role, role.lowerAscii() == name).size() <= 1)",message="a role is set twice, in different letter case: keep one of them"
	// +kubebuilder:validation:XValidation:rule="self.exists(role, self[role].?replicas.orValue(1) > 0)",message="the job has no replicas: add a Master or a Worker with replicas of at least 1"
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.lowerAscii() != 'master' || self[role].?replicas.orValue(1) <= 1)",message="a PyTorchJob has at most one Master: set its replicas to 1 and make the others Workers"
	// +required
	PyTorchReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"pytorchReplicaSpecs"`

	// elasticPolicy lets the number of Workers change while the job runs. Unset means a fixed number.
	// +optional
	ElasticPolicy *ElasticPolicy `json:"elasticPolicy,omitempty"`

	// nprocPerNode is how many training processes torchrun starts in each pod: auto, cpu, gpu or a number. Defaults to auto. A change
	// takes effect with the next attempt.
	// +optional
	NprocPerNode *string `json:"nprocPerNode,omitempty"`
}

// ElasticPolicy is the range of the number of Workers, and their rendezvous.
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas is more than maxReplicas: lower the one or raise the other"
type ElasticPolicy struct {
	// minReplicas is the smallest number of Workers the job can run with. Defaults to the Worker replicas, or to maxReplicas if that is
	// less.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the largest number of Workers an autoscaler may ask for. Defaults to the Worker replicas, or to minReplicas if that
	// is more.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// rdzvBackend is how the Workers find each other. Unset and empty mean c10d, which needs no further service.
	// +optional
	RDZVBackend *RDZVBackend `json:"rdzvBackend,omitempty"`

	// rdzvPort is the port of the rendezvous. Defaults to the Worker's port named pytorchjob-port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	RDZVPort *int32 `json:"rdzvPort,omitempty"`

	// rdzvHost is the host of the rendezvous. Defaults to the first Worker.
	// +optional
	RDZVHost *string `json:"rdzvHost,omitempty"`

	// rdzvId distinguishes this rendezvous from others on the same host. Defaults to the UID of the job and
	// the number of the attempt, so that a process of an earlier attempt cannot join.
	// +optional
	RDZVID *string `json:"rdzvId,omitempty"`

	// rdzvConf is further configuration of the rendezvous. With c10d the setting last_call_timeout, how many seconds a new round waits
	// for more than minReplicas, is 10 unless it is named here.
	// +optional
	RDZVConf []RDZVConf `json:"rdzvConf,omitempty"`

	// standalone gives each pod its own rendezvous, for jobs of a single pod; the other rdzv fields are then ignored. Defaults to
	// false.
	// +optional
	Standalone *bool `json:"standalone,omitempty"`

	// nProcPerNode is how many training processes torchrun starts in each pod. Deprecated: use spec.nprocPerNode. Only one of the two
	// may be set. Unset and 0 mean that it is not set here.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NProcPerNode *int32 `json:"nProcPerNode,omitempty"`

	// maxRestarts is how often torchrun restarts the processes within its pod before the pod fails. Defaults to 30, because each Worker
	// that joins or leaves may use up one in every other pod. It is independent of backoffLimit, which counts restarts of replicas.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// metrics are the targets of an autoscaler. If set, the job gets a HorizontalPodAutoscaler between minReplicas and maxReplicas.
	// Unset or empty means none.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// RDZVBackend is how the Workers of an elastic job find each other.
// +kubebuilder:validation:Enum="";c10d;etcd;etcd-v2
type RDZVBackend string

const (
	// RDZVBackendC10D uses a store that the first Worker holds.
	RDZVBackendC10D RDZVBackend = "c10d"
	// RDZVBackendETCD uses an etcd server, by its old protocol.
	RDZVBackendETCD RDZVBackend = "etcd"
	// RDZVBackendETCDV2 uses an etcd server, by torch's newer implementation.
	RDZVBackendETCDV2 RDZVBackend = "etcd-v2"
)

// RDZVConf is one setting of the rendezvous.
type RDZVConf struct {
	// key is the name of the setting.
	// +optional
	Key string `json:"key,omitempty"`

	// value is its value.
	// +optional
	Value string `json:"value,omitempty"`
}

// PyTorchJobList is a list of PyTorchJobs.
// +kubebuilder:object:root=true
type PyTorchJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []PyTorchJob `json:"items"`
}

// Parts are what jobs of every kind have.
func (job *PyTorchJob) Parts() Parts {
	spec := &job.Spec
	return Parts{PyTorchLayout, &spec.RunPolicy, &spec.FlatPolicy, &spec.PyTorchReplicaSpecs, &job.Status}
}

// SetDefaults fills in what the manifest leaves out; see Job.
func (job *PyTorchJob) SetDefaults() {
	job.Parts().setDefaults()
	spec := &job.Spec
	if worker := spec.PyTorchReplicaSpecs[PyTorchWorker]; spec.ElasticPolicy != nil && worker != nil {
		setElasticBounds(&spec.ElasticPolicy.MinReplicas, &spec.ElasticPolicy.MaxReplicas, *worker.Replicas)
	}
	if spec.NprocPerNode == nil && !spec.ElasticPolicy.setsProcesses() {
		spec.NprocPerNode = new("auto")
	}
}

// setsProcesses reports whether the deprecated field sets the number of processes of each pod.
func (elastic *ElasticPolicy) setsProcesses() bool {
	return elastic != nil && elastic.NProcPerNode != nil && *elastic.NProcPerNode > 0
}
