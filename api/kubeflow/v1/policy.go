package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// CleanPodPolicy says which pods are removed when the job ends.
// +kubebuilder:validation:Enum=None;Running;All
type CleanPodPolicy string

const (
	// CleanPodPolicyNone keeps every pod as it is, running ones included.
	CleanPodPolicyNone CleanPodPolicy = "None"
	// CleanPodPolicyRunning removes what still runs or waits and keeps finished pods, so that their logs can be read.
	CleanPodPolicyRunning CleanPodPolicy = "Running"
	// CleanPodPolicyAll removes every pod.
	CleanPodPolicyAll CleanPodPolicy = "All"
)

// LifecyclePolicy is the four policies that decide when a job ends and what is left of it. They are in spec.runPolicy or, as in the
// first TFJobs and PyTorchJobs, directly in spec. EffectivePolicy says which one counts.
type LifecyclePolicy struct {
	// cleanPodPolicy says which pods are removed when the job ends: None keeps all of them, Running removes those that still run or
	// wait and keeps finished ones for their logs, All removes every pod. When the active deadline or the backoff limit ends the job,
	// running pods are stopped whatever it says. Defaults to Running. It may be changed at any time. Older manifests have it in spec
	// instead of spec.runPolicy; where both are set they must be equal.
	// +optional
	CleanPodPolicy *CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after its end the job is deleted, together with its pods and Services. 0 deletes it
	// at once; unset keeps it forever. A job that another controller owns stays for at least 30 seconds, so that its owner can see
	// the end. It may be changed at any time. Older manifests have it in spec instead of spec.runPolicy; where both are set they
	// must be equal.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is how many seconds after status.startTime the job may run before it fails and its pods are stopped,
	// whatever their restart policy. It is at least 1; unset means no limit. Time spent suspended does not count. It may be changed at
	// any time. Older manifests have it in spec instead of spec.runPolicy; where both are set they must be equal.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is how many retries the job has: the failure after the last of them fails the job. 0 allows none; unset means no
	// limit. Disruptions (evictions, preemptions, lost nodes) are not charged to it. It may be changed at any time. Older manifests
	// have it in spec instead of spec.runPolicy; where both are set they must be equal.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// FlatPolicy holds the policies directly in spec, where the first TFJobs and PyTorchJobs had them. The rules between spec and
// spec.runPolicy are here, once for every kind.
// +kubebuilder:validation:XValidation:rule="!has(self.cleanPodPolicy) || self.?runPolicy.?cleanPodPolicy.orValue(self.cleanPodPolicy) == self.cleanPodPolicy",message="spec.cleanPodPolicy and spec.runPolicy.cleanPodPolicy differ: remove spec.cleanPodPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.ttlSecondsAfterFinished) || self.?runPolicy.?ttlSecondsAfterFinished.orValue(self.ttlSecondsAfterFinished) == self.ttlSecondsAfterFinished",message="spec.ttlSecondsAfterFinished and spec.runPolicy.ttlSecondsAfterFinished differ: remove spec.ttlSecondsAfterFinished"
// +kubebuilder:validation:XValidation:rule="!has(self.activeDeadlineSeconds) || self.?runPolicy.?activeDeadlineSeconds.orValue(self.activeDeadlineSeconds) == self.activeDeadlineSeconds",message="spec.activeDeadlineSeconds and spec.runPolicy.activeDeadlineSeconds differ: remove spec.activeDeadlineSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.backoffLimit) || self.?runPolicy.?backoffLimit.orValue(self.backoffLimit) == self.backoffLimit",message="spec.backoffLimit and spec.runPolicy.backoffLimit differ: remove spec.backoffLimit"
// +kubebuilder:validation:XValidation:rule="(self.?runPolicy.?managedBy.orValue('unset') == 'kueue.x-k8s.io/multikueue') == (oldSelf.?runPolicy.?managedBy.orValue('unset') == 'kueue.x-k8s.io/multikueue')",message="spec.runPolicy.managedBy cannot be changed: create a new job"
type FlatPolicy struct {
	LifecyclePolicy `json:",inline"`
}

// RunPolicy says how the job is run: when it ends, what is left of it, whether it may start, and who runs it.
type RunPolicy struct {
	LifecyclePolicy `json:",inline"`

	// schedulingPolicy asks a gang scheduler to place the pods of the job together, or none of them, and tells it how. Unset leaves this to
	// the operator's flag --gang-scheduler-name. While the job runs, a change takes effect with the next attempt.
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`

	// suspend stops the job: while it is true there are no pods, and those of a running job are removed. Setting it to
	// false starts the job, with a new status.startTime; retries already made stay counted. Defaults to false. It may be changed at
	// any time.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that runs the job: kubeflow.org/training-operator, which is also what unset means, or
	// kueue.x-k8s.io/multikueue, which makes this operator leave the job alone. It cannot be changed.
	// +kubebuilder:validation:Enum=kubeflow.org/training-operator;kueue.x-k8s.io/multikueue
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`
}

// SchedulingPolicy is what a gang scheduler should know about the job.
type SchedulingPolicy struct {
	// minAvailable is how many pods must be placed together before any of them starts. Unset or 0 means all of them; with an elasticPolicy,
	// minReplicas of them.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// queue is the queue of Volcano; other schedulers have none. Unset or empty leaves the choice to the scheduler. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="queue cannot be changed: create a new job"
	// +optional
	Queue string `json:"queue,omitempty"`

	// minResources is what the cluster must have free before Volcano or coscheduling places the pods. Unset means the sum of their requests,
	// empty means nothing.
	// +optional
	MinResources *corev1.ResourceList `json:"minResources,omitempty"`

	// priorityClass is the priority class of the whole gang, and of its pods that name none. Unset or empty means the scheduler's default.
	// +optional
	PriorityClass string `json:"priorityClass,omitempty"`

	// scheduleTimeoutSeconds is how long a part of the gang may hold nodes while the rest has none. Coscheduling releases them then. If no
	// scheduler places the gang together, all its pods stop and start again later, and no retry is charged. kube-scheduler and Volcano hold no
	// nodes for a part of a gang. Unset means coscheduling's default, or without a gang scheduler no limit; zero means the same.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// EffectivePolicy is the policy a job runs under: each field from runPolicy, else from the flat place in spec, else its default.
// CleanPodPolicy is always set in the answer; each of the others is nil where there is no limit.
func EffectivePolicy(runPolicy, flat LifecyclePolicy) LifecyclePolicy {
	running := CleanPodPolicyRunning
	return LifecyclePolicy{
		CleanPodPolicy:          first(runPolicy.CleanPodPolicy, flat.CleanPodPolicy, &running),
		TTLSecondsAfterFinished: first(runPolicy.TTLSecondsAfterFinished, flat.TTLSecondsAfterFinished),
		ActiveDeadlineSeconds:   first(runPolicy.ActiveDeadlineSeconds, flat.ActiveDeadlineSeconds),
		BackoffLimit:            first(runPolicy.BackoffLimit, flat.BackoffLimit),
	}
}

// Or is the policy with what it leaves out taken from another, which may be nil; nil where neither says anything.
func (p LifecyclePolicy) Or(other *LifecyclePolicy) *LifecyclePolicy {
	if other == nil {
		other = &LifecyclePolicy{}
	}
	both := LifecyclePolicy{
		CleanPodPolicy:          first(p.CleanPodPolicy, other.CleanPodPolicy),
		TTLSecondsAfterFinished: first(p.TTLSecondsAfterFinished, other.TTLSecondsAfterFinished),
		ActiveDeadlineSeconds:   first(p.ActiveDeadlineSeconds, other.ActiveDeadlineSeconds),
		BackoffLimit:            first(p.BackoffLimit, other.BackoffLimit),
	}
	if both == (LifecyclePolicy{}) {
		return nil
	}
	return &both
}

// first returns a copy of the first value that is set, so that the answer shares nothing with the job.
func first[T any](candidates ...*T) *T {
	for _, candidate := range candidates {
		if candidate != nil {
			return new(*candidate)
		}
	}
	return nil
}
