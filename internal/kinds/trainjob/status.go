package trainjob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// readStatus takes the neutral status out of a TrainJob's. The job's states are its memory; conditions are read only where Trainer
// itself has ended a job.
func readStatus(s *trainer.TrainJobStatus, roles []job.Role) job.Status {
	return manifest.ReadStatus(&kubeflowv1.JobStatus{
		Conditions: states(s), ReplicaStatuses: s.ReplicaStatuses, StartTime: s.StartTime, CompletionTime: s.CompletionTime, RunStatus: s.RunStatus,
	}, roles)
}

// states are those of a TrainJob of ours, or the end that Trainer gave to one of its own.
func states(s *trainer.TrainJobStatus) []kubeflowv1.JobCondition {
	if len(s.States) > 0 {
		return s.States
	}
	return statesOf(s.Conditions)
}

// writeStatus puts the neutral status into a TrainJob's, and keeps the fields that the neutral status does not have.
func writeStatus(s *trainer.TrainJobStatus, m *manifest.Manifest, status job.Status) {
	written := manifest.WriteStatus(status, m.Selector)
	s.States, s.ReplicaStatuses, s.RunStatus = written.Conditions, written.ReplicaStatuses, written.RunStatus
	s.StartTime, s.CompletionTime = written.StartTime, written.CompletionTime
	s.Conditions, s.JobsStatus, s.Nodes, s.Selector = conditions(status), nil, 0, ""
	for _, role := range status.Roles {
		s.JobsStatus = append(s.JobsStatus, jobStatus(status, role, m.Job))
		if role.Role == m.Leader.Role {
			s.Nodes, s.Selector = role.Active, m.Selector(role.Role)
		}
	}
}

// jobStatus counts a step as the one Job that it would be. Such a Job is active as soon as it has pods, which may wait for a node.
func jobStatus(s job.Status, role job.RoleStatus, j job.Job) trainer.JobStatus {
	one := func(is bool) int32 {
		if is {
			return 1
		}
		return 0
	}
	return trainer.JobStatus{
		Name: role.Role, Active: one(role.Active > 0 || begun(s, role, j)), Succeeded: one(succeeded(role)), Failed: one(failedBy(s, role.Role)),
		Ready: one(ready(role) && !succeeded(role)), Suspended: one(s.Is(job.Suspended)),
	}
}

func succeeded(role job.RoleStatus) bool { return role.Size > 0 && int32(len(role.Done)) == role.Size }

// ready tells whether each pod of a step trains or has succeeded.
func ready(role job.RoleStatus) bool {
	return role.Size > 0 && role.Active+int32(len(role.Done)) >= role.Size
}

// begun tells whether a step has pods, or is about to get them: the job runs, and what the step waits for has been reached.
func begun(s job.Status, role job.RoleStatus, j job.Job) bool {
	if s.Finished() || s.Is(job.Suspended) || role.Size == 0 || succeeded(role) {
		return false
	}
	reached := func(d job.Dependency) bool {
		i := slices.IndexFunc(s.Roles, func(other job.RoleStatus) bool { return other.Role == d.Role })
		return i >= 0 && (succeeded(s.Roles[i]) || d.Until == job.MilestoneReady && ready(s.Roles[i]))
	}
	for _, r := range j.Roles {
		if r.Name == role.Role && slices.ContainsFunc(r.After, func(d job.Dependency) bool { return !reached(d) }) {
			return false
		}
	}
	return true
}

// failedBy tells whether it was a failure of the step that ended the job. Its pods may not show it: one that the kubelet restarts in
// place is never a failed one.
func failedBy(s job.Status, step string) bool {
	n := len(s.Attempts)
	if n == 0 || s.LastFailure == nil || s.LastFailure.Role != step {
		return false
	}
	reason := s.Attempts[n-1].Reason
	return reason == job.ReasonFailed || reason == job.ReasonBackoffLimit
}

// completeMessage is JobSet's, which Trainer passes on and its clients compare. The job's state has ours.
const completeMessage = "jobset completed successfully"

// conditions are those that clients of Trainer know: that a job is suspended, and how it ended.
func conditions(s job.Status) []metav1.Condition {
	for _, c := range s.Conditions {
		if !c.Status {
			continue
		}
		condition := metav1.Condition{
			Status: metav1.ConditionTrue, Message: c.Message, LastTransitionTime: metav1.NewTime(c.LastTransition), ObservedGeneration: s.ObservedGeneration,
		}
		switch c.Type {
		case job.Suspended:
			condition.Type, condition.Reason = trainer.TrainJobSuspended, "Suspended"
		case job.Succeeded:
			condition.Type, condition.Reason, condition.Message = trainer.TrainJobComplete, "AllJobsCompleted", completeMessage
		case job.Failed:
			condition.Type, condition.Reason = trainer.TrainJobFailed, failedReason(s)
		default:
			continue
		}
		return []metav1.Condition{condition}
	}
	return nil
}

// failedReason is Trainer's word, or JobSet's, for why a job failed.
func failedReason(s job.Status) string {
	if n := len(s.Attempts); n > 0 {
		switch s.Attempts[n-1].Reason {
		case job.ReasonDeadlineExceeded:
			return "DeadlineExceeded"
		case job.ReasonBackoffLimit:
			return "ReachedMaxRestarts"
		case job.ReasonRefused:
			return "TrainingRuntimeNotSupported"
		}
	}
	return "FailedJobs"
}

// finished tells whether a job has ended, by us or by Trainer.
func finished(tj *trainer.TrainJob) bool { return len(statesOf(tj.Status.Conditions)) > 0 }

// statesOf is the end of a job in the words of our states, none if it has not ended.
func statesOf(conditions []metav1.Condition) []kubeflowv1.JobCondition {
	types := map[string]kubeflowv1.JobConditionType{trainer.TrainJobComplete: kubeflowv1.JobSucceeded, trainer.TrainJobFailed: kubeflowv1.JobFailed}
	for _, c := range conditions {
		if state, ends := types[c.Type]; ends && c.Status == metav1.ConditionTrue {
			return []kubeflowv1.JobCondition{{
				Type: state, Status: corev1.ConditionTrue, Reason: c.Reason, Message: c.Message,
				LastUpdateTime: c.LastTransitionTime, LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return nil
}
