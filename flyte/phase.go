package flyte

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Phase is what Flyte reads from a job.
type Phase string

// The phases Flyte derives for a job.
const (
	// PhaseQueued is a job that waits: for the operator, for resources, for Kueue.
	PhaseQueued Phase = "Queued"
	// PhaseRunning is a job that trains, or recovers from a failure.
	PhaseRunning Phase = "Running"
	// PhaseSuccess is a job that has succeeded. The task has succeeded if its outputs are found, too.
	PhaseSuccess Phase = "Success"
	// PhaseRetryable is a failure charged to the task's retries.
	PhaseRetryable Phase = "RetryableFailure"
	// PhasePermanent is a failure that is not retried.
	PhasePermanent Phase = "PermanentFailure"
	// PhaseSystem is a failure charged to Flyte's own budget: the job is deleted and created again.
	PhaseSystem Phase = "SystemRetryableFailure"
	// PhaseUndefined is not a phase; Flyte ends such a task with its own error.
	PhaseUndefined Phase = "Undefined"
	// PhaseError is a failed read of the job. Flyte tries again, and gives up after three errors in a row.
	PhaseError Phase = "Error"
)

// Reading is the phase of a job, what Flyte shows its user, and why.
type Reading struct {
	// Phase is what the task's state becomes.
	Phase Phase
	// Code and Message are Flyte's error, or the reason it shows.
	Code, Message string
	// Why names what decided, for the administrator of the operator.
	Why string
}

// operatorTimeout is the default of Flyte's plugins.kf-operator.timeout.
const operatorTimeout = time.Minute

// ReadPhase derives the phase as Flyte's plugin does at that time. A nil job is one that is gone. The pods may include those of
// other jobs; only Flyte 2 reads them, and only for a PyTorchJob's worker 0.
func ReadPhase(job Manifest, pods []corev1.Pod, now time.Time, dialect Dialect) Reading {
	var (
		status  kubeflowv1.JobStatus
		suspend *bool
	)
	switch j := job.(type) {
	case *kubeflowv1.PyTorchJob:
		status, suspend = j.Status, j.Spec.RunPolicy.Suspend
	case *kubeflowv1.TFJob:
		status, suspend = j.Status, j.Spec.RunPolicy.Suspend
	case *kubeflowv1.MPIJob:
		status, suspend = j.Status, j.Spec.RunPolicy.Suspend
	case nil:
		return Reading{PhaseSystem, "ResourceDeletedExternally", "", "the job is gone, and Flyte did not delete it"}
	default:
		return Reading{PhaseError, "", fmt.Sprintf("%T is no job of Flyte's plugins", job), "it is no PyTorchJob, no TFJob and no MPIJob"}
	}
	reading := readJob(job, status, suspend != nil && *suspend, pods, now, dialect)
	if job.GetDeletionTimestamp() != nil && (reading.Phase == PhaseQueued || reading.Phase == PhaseRunning || reading.Phase == PhaseUndefined) {
		return Reading{PhaseSystem, "UnexpectedObjectDeletion", "", "the job is being deleted and has not ended"}
	}
	return reading
}

func readJob(job Manifest, status kubeflowv1.JobStatus, suspended bool, pods []corev1.Pod, now time.Time, dialect Dialect) Reading {
	created := job.GetCreationTimestamp().Time
	mayWait := suspended && dialect == Flyte1
	if status.StartTime == nil && created.Add(operatorTimeout).Before(now) && !mayWait {
		return Reading{PhaseError, "", "the operator has not touched the job since its creation",
			fmt.Sprintf("status.startTime is not set %s after creation", now.Sub(created).Round(time.Second))}
	}
	current, why := currentCondition(status.Conditions)
	if current == nil && status.Conditions != nil {
		return Reading{PhaseError, "", "found no current condition", why}
	}
	if _, isPyTorch := job.(*kubeflowv1.PyTorchJob); isPyTorch && dialect != Flyte1 {
		name := job.GetName() + "-worker-0"
		for i := range pods {
			if pods[i].Namespace == job.GetNamespace() && pods[i].Name == name {
				if failure, failed := readPod(&pods[i], kubeflowv1.PyTorchContainer, now); failed {
					return failure
				}
			}
		}
	}
	return readCondition(current, why, dialect)
}

// currentCondition is the newest condition that is True. Times are whole seconds; if two are equal, the earlier in the list counts.
func currentCondition(conditions []kubeflowv1.JobCondition) (*kubeflowv1.JobCondition, string) {
	switch {
	case conditions == nil:
		return nil, "there is no condition yet"
	case len(conditions) == 0:
		return nil, "status.conditions is an empty list"
	}
	sorted := slices.Clone(conditions)
	slices.SortStableFunc(sorted, func(a, b kubeflowv1.JobCondition) int {
		return b.LastTransitionTime.Compare(a.LastTransitionTime.Time)
	})
	for i, c := range sorted {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		why := fmt.Sprintf("the newest True condition is %s", c.Type)
		for _, rival := range sorted[i+1:] {
			if rival.Status == corev1.ConditionTrue && sameSecond(rival.LastTransitionTime, c.LastTransitionTime) {
				why += fmt.Sprintf("; %s is as new, but later in the list", rival.Type)
			}
		}
		return &c, why
	}
	return nil, "no condition is True"
}

func sameSecond(a, b metav1.Time) bool { return a.Time.Equal(b.Time) }

func readCondition(c *kubeflowv1.JobCondition, why string, dialect Dialect) Reading {
	if c == nil {
		return Reading{PhaseQueued, "", "JobCreated", why}
	}
	switch c.Type {
	case kubeflowv1.JobCreated:
		return Reading{PhaseQueued, "", "JobCreated", why}
	case kubeflowv1.JobRunning, kubeflowv1.JobRestarting:
		return Reading{PhaseRunning, "", "", why}
	case kubeflowv1.JobSucceeded:
		return Reading{PhaseSuccess, "", "", why + "; Flyte now looks for outputs, and an error file makes it a failure"}
	case kubeflowv1.JobFailed:
		return Reading{PhaseRetryable, "DownstreamSystemError", fmt.Sprintf("Job failed:\n\t%s - %s", c.Reason, c.Message), why}
	case kubeflowv1.JobSuspended:
		if dialect == Flyte1 {
			return Reading{PhaseQueued, "", "Suspended", why}
		}
	}
	return Reading{PhaseUndefined, "", "", why + ", which this Flyte does not know"}
}
