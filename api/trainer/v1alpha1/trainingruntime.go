package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// The kinds of runtimes.
const (
	TrainingRuntimeKind        = "TrainingRuntime"
	ClusterTrainingRuntimeKind = "ClusterTrainingRuntime"
)

// TrainingRuntime is a template for TrainJobs in its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=trainingruntimes,singular=trainingruntime
// +kubebuilder:printcolumn:name="Framework",type=string,JSONPath=`.metadata.labels.trainer\.kubeflow\.org/framework`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrainingRuntime struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The label trainer.kubeflow.org/framework names what the runtime trains with.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what TrainJobs are made from. It may be changed at any time: jobs that have begun keep the copy they took.
	// +required
	Spec TrainingRuntimeSpec `json:"spec,omitzero"`
}

// ClusterTrainingRuntime is a template for TrainJobs in every namespace.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustertrainingruntimes,singular=clustertrainingruntime,scope=Cluster
// +kubebuilder:printcolumn:name="Framework",type=string,JSONPath=`.metadata.labels.trainer\.kubeflow\.org/framework`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterTrainingRuntime struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The label trainer.kubeflow.org/framework names what the runtime trains with.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what TrainJobs are made from. It may be changed at any time: jobs that have begun keep the copy they took.
	// +required
	Spec TrainingRuntimeSpec `json:"spec,omitzero"`
}

// TrainingRuntimeSpec is the template of TrainJobs.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.template) || !has(self.template.spec) || !has(self.template.spec.replicatedJobs) || self.template.spec.replicatedJobs.all(step, !has(step.replicas) || step.replicas == 1)",fieldPath=".template",message="a step is one Job: leave out replicas, and set mlPolicy.numNodes for the number of pods that train"
type TrainingRuntimeSpec struct {
	// mlPolicy says how many pods train and how they find each other. Unset means one pod, without these environment variables.
	// +optional
	MLPolicy *MLPolicy `json:"mlPolicy,omitempty"`

	// podGroupPolicy asks for a gang scheduler. Unset leaves this to the operator's flag --gang-scheduler-name.
	// +optional
	PodGroupPolicy *PodGroupPolicy `json:"podGroupPolicy,omitempty"`

	// runPolicy says when jobs end and what is left of them, if they do not set it themselves. Unset means the default of each of its
	// fields. Kubeflow Trainer does not have it.
	// +optional
	RunPolicy *RuntimeRunPolicy `json:"runPolicy,omitempty"`

	// template is the steps of the training and their pods, as in a JobSet. The label trainer.kubeflow.org/trainjob-ancestor-step
	// on a step's Job template says which part of a TrainJob applies to it: trainer, dataset-initializer or model-initializer.
	// +optional
	Template JobSetTemplateSpec `json:"template,omitzero"`
}

// JobSetTemplateSpec is a JobSet without a name of its own.
type JobSetTemplateSpec struct {
	// metadata is labels and annotations for every pod.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the JobSet.
	// +optional
	Spec jobsetv1alpha2.JobSetSpec `json:"spec,omitzero"`
}

// RuntimeRunPolicy says when jobs of a runtime end and what is left of them.
type RuntimeRunPolicy struct {
	// cleanPodPolicy says which pods are removed when a job ends: None keeps all of them, Running removes those that still run or
	// wait and keeps finished ones for their logs, All removes every pod. Defaults to Running.
	// +optional
	CleanPodPolicy *kubeflowv1.CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after its end a job is deleted, if the job does not set it. Unset keeps it forever.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is how many seconds a job may run, if the job does not set it. Unset means no limit.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is how many retries a job has. Unset means the template's failurePolicy.maxRestarts, else the backoffLimit of the
	// step that trains, else 6.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// TrainingRuntimeList is a list of TrainingRuntimes.
// +kubebuilder:object:root=true
type TrainingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the runtimes.
	Items []TrainingRuntime `json:"items"`
}

// ClusterTrainingRuntimeList is a list of ClusterTrainingRuntimes.
// +kubebuilder:object:root=true
type ClusterTrainingRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the runtimes.
	Items []ClusterTrainingRuntime `json:"items"`
}
