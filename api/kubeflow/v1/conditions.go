package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobConditionType is one of the six things that can be said of a job.
type JobConditionType string

const (
	// JobCreated says that the operator has seen the job.
	JobCreated JobConditionType = "Created"
	// JobRunning says that every required replica runs; in an elastic job, at least minReplicas of them.
	JobRunning JobConditionType = "Running"
	// JobRestarting says that a failure or a disruption is being recovered from.
	JobRestarting JobConditionType = "Restarting"
	// JobSuspended says that the job is kept from running.
	JobSuspended JobConditionType = "Suspended"
	// JobSucceeded is a verdict: the training came to its end.
	JobSucceeded JobConditionType = "Succeeded"
	// JobFailed is a verdict: the training was given up.
	JobFailed JobConditionType = "Failed"
)

// JobResumed is no condition type: it is the word for a reason, used when Suspended becomes False.
const JobResumed = "Resumed"

// ConditionReason is the reason that goes with a condition: the kind and what happened, as in PyTorchJobRunning or TFJobResumed.
func ConditionReason[T ~string](kind string, happened T) string {
	return kind + string(happened)
}

// JobCondition is one thing that can be said of a job, and since when.
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
