package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobConditionType is one of the six conditions of a job.
type JobConditionType string

const (
	// JobCreated says that the operator has seen the job.
	JobCreated JobConditionType = "Created"
	// JobRunning says that every required replica runs; in an elastic job, at least minReplicas of them.
	JobRunning JobConditionType = "Running"
	// JobRestarting says that the job recovers from a failure or a disruption.
	JobRestarting JobConditionType = "Restarting"
	// JobSuspended says that suspend is true, so the job does not run.
	JobSuspended JobConditionType = "Suspended"
	// JobSucceeded is a verdict: the training has finished.
	JobSucceeded JobConditionType = "Succeeded"
	// JobFailed is a verdict: the training failed and is not retried.
	JobFailed JobConditionType = "Failed"
)

// JobResumed is not a condition type: it is used in the reason when Suspended becomes False.
const JobResumed = "Resumed"

// ConditionReason is the reason that goes with a condition: the kind and what happened, as in PyTorchJobRunning or TFJobResumed.
func ConditionReason[T ~string](kind string, happened T) string {
	return kind + string(happened)
}

// JobCondition is one condition of a job, and since when it has its status.
type JobCondition struct {
	// type is Created, Running, Restarting, Suspended, Succeeded or Failed.
	Type JobConditionType `json:"type"`

	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// reason is a word for programs: the kind and what happened, e.g. PyTorchJobRunning.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is a sentence for people.
	// +optional
	Message string `json:"message,omitempty"`

	// lastUpdateTime is when anything of this condition was last written.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`

	// lastTransitionTime is when status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
}
