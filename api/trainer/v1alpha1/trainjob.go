package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainJobKind is the kind's name.
const TrainJobKind = "TrainJob"

// TrainJob is a training based on a runtime.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=trainjobs,singular=trainjob
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.trainer.numNodes,statuspath=.status.nodes,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.states[-1:].type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata.name",message="the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 56",optionalOldSelf=true,fieldPath=".metadata.name",message="pods are named <name>-<step>-<index> and have at most 63 characters: use a shorter name (40 characters fit the usual steps)"
type TrainJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train, and with which runtime.
	// +required
	Spec TrainJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status TrainJobStatus `json:"status,omitzero"`
}

// TrainJobSpec is what to train, and with which runtime. Only numNodes of trainer may be changed, which scales the job.
// +kubebuilder:validation:XValidation:rule="has(self.initializer) == has(oldSelf.initializer)",fieldPath=".initializer",message="initializer cannot be changed: create a new job"
// +kubebuilder:validation:XValidation:rule="has(self.trainer) == has(oldSelf.trainer) || [self, oldSelf].all(s, !has(s.trainer) || !(has(s.trainer.image) || has(s.trainer.command) || has(s.trainer.args) || has(s.trainer.env) || has(s.trainer.resourcesPerNode) || has(s.trainer.numProcPerNode)))",fieldPath=".trainer",message="only numNodes of trainer can be changed: create a new job"
// +kubebuilder:validation:XValidation:rule="has(self.activeDeadlineSeconds) == has(oldSelf.activeDeadlineSeconds)",fieldPath=".activeDeadlineSeconds",message="activeDeadlineSeconds cannot be changed: create a new job"
// +kubebuilder:validation:XValidation:rule="(has(self.suspend) && self.suspend) || (has(oldSelf.suspend) && oldSelf.suspend) || (has(self.runtimePatches) ? has(oldSelf.runtimePatches) && self.runtimePatches == oldSelf.runtimePatches : !has(oldSelf.runtimePatches))",fieldPath=".runtimePatches",message="runtimePatches can only be changed while the job is suspended: set suspend to true with the change, and to false after it"
type TrainJobSpec struct {
	// runtimeRef names the runtime of the job. The job keeps a copy of it, so later edits of the runtime do not change the job. It
	// cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="runtimeRef cannot be changed: create a new job"
	// +required
	RuntimeRef RuntimeRef `json:"runtimeRef,omitzero"`

	// initializer is the data to fetch before the training. Unset leaves the runtime's steps as they are. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="initializer cannot be changed: create a new job"
	// +optional
	Initializer *Initializer `json:"initializer,omitempty"`

	// trainer overrides the runtime in the step that trains. Unset changes nothing. Only its numNodes can be changed.
	// +optional
	Trainer *Trainer `json:"trainer,omitempty"`

	// runtimePatches are changes to the runtime for this job, made by clients or queues, each under its own name. Entries are
	// merged in their order, the later over the earlier. They can only be changed while the job is suspended.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=manager
	// +optional
	RuntimePatches []RuntimePatch `json:"runtimePatches,omitempty"`

	// suspend stops the job: while it is true there are no pods, and those of a running job are removed. Setting it to
	// false starts the job, with a new status.startTime; retries already made stay counted. Defaults to false. It may be changed at
	// any time.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// activeDeadlineSeconds is how many seconds after status.startTime the job may run before it fails and its pods are stopped. Time
	// spent suspended does not count. It is at least 1. Unset means the runtime's value, else no limit. It cannot be changed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="activeDeadlineSeconds cannot be changed: create a new job"
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after its end the job is deleted, together with its pods and Services. 0 deletes it
	// at once. Unset means the runtime's value, else that it is kept forever. It may be changed at any time.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// managedBy names the controller that runs the job: trainer.kubeflow.org/trainjob-controller, the default, or
	// kueue.x-k8s.io/multikueue, which makes this operator leave the job alone. It cannot be changed.
	// +kubebuilder:default="trainer.kubeflow.org/trainjob-controller"
	// +kubebuilder:validation:Enum="trainer.kubeflow.org/trainjob-controller";"kueue.x-k8s.io/multikueue"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed: create a new job"
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`
}

// RuntimeRef names a runtime.
// +kubebuilder:validation:XValidation:rule="self.?apiGroup.orValue('trainer.kubeflow.org') == 'trainer.kubeflow.org' && self.?kind.orValue('TrainingRuntime') in ['TrainingRuntime', 'ClusterTrainingRuntime']",message="there is no such kind of runtime: use TrainingRuntime or ClusterTrainingRuntime of trainer.kubeflow.org"
type RuntimeRef struct {
	// name is the runtime's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`

	// apiGroup is the runtime's API group: trainer.kubeflow.org, which is also the default.
	// +kubebuilder:default="trainer.kubeflow.org"
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`

	// kind is ClusterTrainingRuntime, the default, or TrainingRuntime, which is looked up in the job's namespace.
	// +kubebuilder:default="ClusterTrainingRuntime"
	// +optional
	Kind *string `json:"kind,omitempty"`
}

// TrainJobList is a list of TrainJobs.
// +kubebuilder:object:root=true
type TrainJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []TrainJob `json:"items"`
}
