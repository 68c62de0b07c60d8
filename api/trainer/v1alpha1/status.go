package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// The conditions of a TrainJob. A job that waits or runs has none: clients of Trainer read any other as not running.
const (
	// TrainJobSuspended says that suspend is true, so the job does not run.
	TrainJobSuspended = "Suspended"
	// TrainJobComplete says that the job succeeded.
	TrainJobComplete = "Complete"
	// TrainJobFailed says that the job failed.
	TrainJobFailed = "Failed"
)

// TrainJobStatus is what the operator last saw of a job. conditions, jobsStatus and trainerStatus are Trainer's; the others are
// ours. Only the operator writes it.
type TrainJobStatus struct {
	// conditions says that the job is suspended, or how it ended: Suspended, Complete, Failed. A job that waits or runs has none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// jobsStatus counts each step as the one Job that it is for Trainer: every number is 0 or 1. replicaStatuses counts its pods.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	JobsStatus []JobStatus `json:"jobsStatus,omitempty"`

	// trainerStatus is what the training reports about itself. It is not supported yet.
	// +optional
	TrainerStatus *TrainerStatus `json:"trainerStatus,omitempty"`

	// states are the conditions that a PyTorchJob has: Created, Running, Restarting, Suspended, Succeeded,
	// Failed. The newest that is True is the last of the list.
	// +optional
	States []kubeflowv1.JobCondition `json:"states,omitempty"`

	// replicaStatuses counts the pods of each step.
	// +optional
	ReplicaStatuses map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaStatus `json:"replicaStatuses,omitempty"`

	// startTime is when the job was first started, or resumed after it was suspended. The active deadline counts from here.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job succeeded or failed. ttlSecondsAfterFinished counts from here.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// nodes is how many pods train. Autoscalers read it.
	// +optional
	Nodes int32 `json:"nodes"`

	// selector is the label query that finds the pods that train. Autoscalers read it.
	// +optional
	Selector string `json:"selector,omitempty"`

	// runtime is the runtime as it was when the job was first seen. The job uses this copy, even if the runtime is changed or deleted.
	// +optional
	Runtime *RuntimeSnapshot `json:"runtime,omitempty"`

	kubeflowv1.RunStatus `json:",inline"`
}

// RuntimeSnapshot is a copy of a runtime.
type RuntimeSnapshot struct {
	// kind is the runtime's kind.
	Kind string `json:"kind"`

	// name is the runtime's name.
	Name string `json:"name"`

	// uid is the runtime's UID.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// generation is the runtime's metadata.generation.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// spec is the runtime's spec. It was checked when the runtime was stored, and is not checked again here.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec runtime.RawExtension `json:"spec,omitzero"`
}

// JobStatus counts one step as the one Job that it is for Trainer.
type JobStatus struct {
	// name is the step's name.
	Name string `json:"name"`

	// ready is 1 when all pods of the step run or have succeeded.
	Ready int32 `json:"ready"`

	// succeeded is 1 when all pods of the step have succeeded.
	Succeeded int32 `json:"succeeded"`

	// failed is 1 when the job failed because of this step.
	Failed int32 `json:"failed"`

	// active is 1 from the moment the step gets its pods, which may still wait for a node, until it has ended.
	Active int32 `json:"active"`

	// suspended is 1 when the job is suspended.
	Suspended int32 `json:"suspended"`
}

// TrainerStatus is what the training reports about itself.
type TrainerStatus struct {
	// progressPercentage is how much is done, from 0 to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ProgressPercentage *int32 `json:"progressPercentage,omitempty"`

	// estimatedRemainingSeconds is how long it will still take.
	// +kubebuilder:validation:Minimum=0
	// +optional
	EstimatedRemainingSeconds *int64 `json:"estimatedRemainingSeconds,omitempty"`

	// metrics are the latest values.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Metrics []Metric `json:"metrics,omitempty"`

	// lastUpdatedTime is when the training reported it.
	// +required
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime,omitzero"`
}

// Metric is the latest value of a metric.
type Metric struct {
	// name is what is measured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// value is the measured value.
	// +kubebuilder:validation:MaxLength=64
	Value string `json:"value"`
}
