package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// PaddleJobKind is the kind's name.
	PaddleJobKind = "PaddleJob"
	// PaddleMaster is the role of parameter servers, whose end ends the job. There may be several.
	PaddleMaster ReplicaType = "Master"
	// PaddleWorker is the role of the trainers. Without a Master the first Worker is where all meet.
	PaddleWorker ReplicaType = "Worker"
	// PaddleContainer is the name of the training container. Without a container of this name it is the first one.
	PaddleContainer = "paddle"
	// PaddlePortName is the name of the training container's port that the others connect to.
	PaddlePortName = "master"
	// PaddlePort is that port's number where the template names none.
	PaddlePort int32 = 36543
)

// PaddleLayout is how a PaddleJob is written.
var PaddleLayout = Layout{
	Kind: PaddleJobKind, ReplicaSpecs: "paddleReplicaSpecs", Roles: []ReplicaType{PaddleMaster, PaddleWorker},
	Container: PaddleContainer, PortName: PaddlePortName, Port: PaddlePort, RestartPolicy: RestartPolicyOnFailure,
}

// PaddleJob is a distributed PaddlePaddle training.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=paddlejobs,singular=paddlejob
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.paddleReplicaSpecs.Worker.replicas,statuspath=.status.replicaStatuses.Worker.active,selectorpath=.status.replicaStatuses.Worker.selector
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata.name",message="the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.paddleReplicaSpecs.all(role, size(self.metadata.name) + size(role) + size(string([1, self.spec.paddleReplicaSpecs[role].?replicas.orValue(1), role.lowerAscii() == 'worker' ? self.spec.?elasticPolicy.?maxReplicas.orValue(1) : 1].max() - 1)) <= 61)",optionalOldSelf=true,fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
// +kubebuilder:validation:XValidation:rule="self.spec.paddleReplicaSpecs.all(role, size(self.metadata.name) + size(role) + size(string([1, self.spec.paddleReplicaSpecs[role].?replicas.orValue(1), role.lowerAscii() == 'worker' ? self.spec.?elasticPolicy.?maxReplicas.orValue(1) : 1].max() - 1)) <= 61) || !oldSelf.spec.paddleReplicaSpecs.all(role, size(oldSelf.metadata.name) + size(role) + size(string([1, oldSelf.spec.paddleReplicaSpecs[role].?replicas.orValue(1), role.lowerAscii() == 'worker' ? oldSelf.spec.?elasticPolicy.?maxReplicas.orValue(1) : 1].max() - 1)) <= 61)",fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
type PaddleJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec PaddleJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status JobStatus `json:"status,omitzero"`
}

// PaddleJobSpec is what to train and how to run it.
// +kubebuilder:validation:XValidation:rule="!has(self.elasticPolicy) || self.paddleReplicaSpecs.exists(role, role.lowerAscii() == 'worker')",message="elasticPolicy is about Workers and the job has none: add the role Worker to paddleReplicaSpecs"
// +kubebuilder:validation:XValidation:rule="size(self.?elasticPolicy.?metrics.orValue([])) == 0 || 'Worker' in self.paddleReplicaSpecs || !self.paddleReplicaSpecs.exists(role, role.lowerAscii() == 'worker')",message="with elasticPolicy.metrics the role must be spelled Worker: the autoscaler finds the number of replicas under that name only"
type PaddleJobSpec struct {
	FlatPolicy `json:",inline"`

	// runPolicy says when the job ends, what is left of it, whether it may start, and who runs it. Unset means the default of each of
	// its fields.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// paddleReplicaSpecs is the roles of the job: Master, which are parameter servers, and Worker. The names may be written in any letter
	// case. The numbers of replicas may be changed while the job runs.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.lowerAscii() in ['master', 'worker'])",messageExpression="'unknown role ' + self.filter(role, !(role.lowerAscii() in ['master', 'worker']))[0] + ': use Master or Worker'"
	// +kubebuilder:validation:XValidation:rule="['master', 'worker'].all(name, self.filter(role, role.lowerAscii() == name).size() <= 1)",message="a role is there twice, in different letter case: keep one of them"
	// +kubebuilder:validation:XValidation:rule="self.exists(role, self[role].?replicas.orValue(1) > 0)",message="the job has no replicas: add a Master or a Worker with replicas of at least 1"
	// +required
	PaddleReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"paddleReplicaSpecs"`

	// elasticPolicy lets the number of Workers change while the job runs, where an etcd is their master: the Workers' template sets
	// PADDLE_MASTER to etcd://…. Unset means a fixed number.
	// +optional
	ElasticPolicy *PaddleElasticPolicy `json:"elasticPolicy,omitempty"`
}

// PaddleElasticPolicy says between which numbers of Workers the job can run.
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas is more than maxReplicas: lower the one or raise the other"
type PaddleElasticPolicy struct {
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

	// maxRestarts is how often Paddle's launcher restarts the processes within its pod before the pod fails. Unset means the launcher's
	// default. It is apart from backoffLimit, which counts restarts of replicas.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// metrics is what an autoscaler should aim at. The job then gets a HorizontalPodAutoscaler between minReplicas and maxReplicas.
	// Unset or empty means none.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// PaddleJobList is a list of PaddleJobs.
// +kubebuilder:object:root=true
type PaddleJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []PaddleJob `json:"items"`
}

// Parts are what jobs of every kind have.
func (job *PaddleJob) Parts() Parts {
	spec := &job.Spec
	return Parts{PaddleLayout, &spec.RunPolicy, &spec.FlatPolicy, &spec.PaddleReplicaSpecs, &job.Status}
}

// SetDefaults fills in what the manifest leaves out; see Job.
func (job *PaddleJob) SetDefaults() {
	job.Parts().setDefaults()
	elastic := job.Spec.ElasticPolicy
	if worker := job.Spec.PaddleReplicaSpecs[PaddleWorker]; elastic != nil && worker != nil {
		setElasticBounds(&elastic.MinReplicas, &elastic.MaxReplicas, *worker.Replicas)
	}
}
