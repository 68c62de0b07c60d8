package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobStatus is what the operator last saw of a job. The fields up to lastReconcileTime are those of Training Operator 1.9; the
// others are ours. Only the operator writes it.
type JobStatus struct {
	// conditions says what is true of the job. Created is the first of the list unless nothing else is True, the newest condition
	// that is True is the last, and exactly one of Succeeded and Failed is there once the job has ended.
	// +optional
	Conditions []JobCondition `json:"conditions,omitempty"`

	// replicaStatuses counts the pods of each role.
	// +optional
	ReplicaStatuses map[ReplicaType]*ReplicaStatus `json:"replicaStatuses,omitempty"`

	// startTime is when the operator first saw the job, or when it was resumed after it was suspended. The active deadline counts
	// from here.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job succeeded or failed. ttlSecondsAfterFinished counts from here.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// lastReconcileTime is no longer written. It is kept because jobs of older operators have it.
	// +optional
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	RunStatus `json:",inline"`
}

// RunStatus is what our engine adds to the status of every kind: the progress of the job, and what the engine must remember.
type RunStatus struct {
	// observedGeneration is the metadata.generation this status was decided on. A smaller one means that the last edit of the job has
	// not been seen yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// policy has those fields of the job's policy that clients of other operators do not know, as they were last set. When such a client
	// writes the job, it drops them from spec; then these count.
	// +optional
	Policy *LifecyclePolicy `json:"policy,omitempty"`

	// ready is how many of the required replicas have their training container running, as in "3/4".
	// +optional
	Ready string `json:"ready,omitempty"`

	// message is one sentence on what the job waits for, e.g. which replica cannot be placed and why. Empty when it waits for nothing.
	// +optional
	Message string `json:"message,omitempty"`

	// attempt is the number of the current attempt, from 0. It rises when all replicas are restarted together.
	// +optional
	Attempt int32 `json:"attempt"`

	// restarts is how often the job, or one of its replicas, was restarted for any reason: retries and disruptions together.
	// +optional
	Restarts int32 `json:"restarts"`

	// retries is how many failures were charged to backoffLimit.
	// +optional
	Retries int32 `json:"retries"`

	// disruptions is how many restarts were not charged, because the replica was evicted, preempted, deleted or lost with its node.
	// +optional
	Disruptions int32 `json:"disruptions"`

	// lastFailure is the last failure of a replica. It is kept when the pod is gone.
	// +optional
	LastFailure *ReplicaFailure `json:"lastFailure,omitempty"`

	// attempts are the last ten attempts, oldest first, including the current one.
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Attempts []Attempt `json:"attempts,omitempty"`

	// notBefore is the earliest moment at which the current attempt may start. Unset means at once.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// restartsInARow is how many restarts of the whole job followed each other quickly. Each makes the next wait longer; ten minutes
	// of training reset it.
	// +optional
	RestartsInARow int32 `json:"restartsInARow,omitempty"`

	// avoidNodes are the nodes that failed the job: they refused a pod of it, or were lost. New pods prefer other nodes.
	// +optional
	AvoidNodes []AvoidedNode `json:"avoidNodes,omitempty"`

	// finishingSince is when the first Worker of an elastic job succeeded. From then on nothing is restarted or added.
	// +optional
	FinishingSince *metav1.Time `json:"finishingSince,omitempty"`

	// records has an entry for each replica of the current attempt that failed or was replaced. With them a failure is counted exactly
	// once.
	// +optional
	Records []ReplicaRecord `json:"records,omitempty"`
}

// ReplicaStatus counts the pods of one role.
type ReplicaStatus struct {
	// active is how many pods run.
	// +optional
	Active int32 `json:"active,omitempty"`

	// succeeded is how many pods succeeded.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// failed is how many pods failed.
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// labelSelector is no longer written. It is kept because jobs of older operators have it. Deprecated: read selector.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// selector is the label query that finds the pods of this role. Autoscalers read it.
	// +optional
	Selector string `json:"selector,omitempty"`

	// replicas is the number of replicas with which the current attempt was started.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// startedIndexes are the replicas whose training has run in their current pod, as numbers and ranges: "0,3-5". If one of them has
	// no pod, somebody deleted it.
	// +optional
	StartedIndexes string `json:"startedIndexes,omitempty"`

	// completedIndexes are the replicas that succeeded in the current attempt and are not run again, as numbers and ranges: "0,3-5".
	// +optional
	CompletedIndexes string `json:"completedIndexes,omitempty"`
}

// FailureClass says whose fault a failure was.
// +kubebuilder:validation:Enum=Application;Disruption;Refusal
type FailureClass string

const (
	// FailureApplication is a training container that ended with its own exit code, out of memory included.
	FailureApplication FailureClass = "Application"
	// FailureDisruption is a pod that was evicted, preempted, deleted by somebody or lost with its node.
	FailureDisruption FailureClass = "Disruption"
	// FailureRefusal is a pod that its node refused before any container ran. It is replaced alone and not charged.
	FailureRefusal FailureClass = "Refusal"
)

// ReplicaFailure describes the failure of a replica.
type ReplicaFailure struct {
	// replica is the role and index in lower case, e.g. worker-3.
	// +optional
	Replica string `json:"replica,omitempty"`

	// pod is the name of the pod.
	// +optional
	Pod string `json:"pod,omitempty"`

	// node is the name of the node the pod ran on. Empty when it was never placed.
	// +optional
	Node string `json:"node,omitempty"`

	// class says whose fault it was: Application, charged to backoffLimit, or Disruption, not charged.
	// +optional
	Class FailureClass `json:"class,omitempty"`

	// exitCode is the exit code of the training container. Unset if there is none.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// signal is the signal that ended the training container. Unset if there was none.
	// +optional
	Signal *int32 `json:"signal,omitempty"`

	// reason is Kubernetes' word for it, e.g. OOMKilled or Evicted.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is the end of the container's termination message or log, or Kubernetes' message.
	// +optional
	Message string `json:"message,omitempty"`

	// time is when it happened.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// Attempt is one run of the whole gang.
type Attempt struct {
	// number counts attempts from 0.
	Number int32 `json:"number"`

	// startTime is when the attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// endTime is when the attempt ended. Unset for the current one.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// reason is a word for what ended the attempt, e.g. Succeeded, Restarted or DeadlineExceeded. Empty for the current one.
	// +optional
	Reason string `json:"reason,omitempty"`

	// why is one sentence on what ended the attempt. Empty for the current one.
	// +optional
	Why string `json:"why,omitempty"`
}

// AvoidedNode is a node that failed a job.
type AvoidedNode struct {
	// node is the name of the node.
	Node string `json:"node"`

	// until is when the node is forgiven: an hour after the first time it failed the job, a day after each further time.
	Until metav1.Time `json:"until"`

	// strikes is how often the node failed the job.
	// +optional
	Strikes int32 `json:"strikes,omitempty"`

	// why is how the node failed the job the last time.
	// +optional
	Why string `json:"why,omitempty"`

	// onlyPreferred says that pods found no other node for five minutes, so that under avoid-nodes Require other nodes are only
	// preferred to this one.
	// +optional
	OnlyPreferred bool `json:"onlyPreferred,omitempty"`
}

// ReplicaRecord is what the engine must remember about one replica, so that it counts each of its failures exactly once.
type ReplicaRecord struct {
	// role is the role of the replica.
	Role ReplicaType `json:"role"`

	// index is the index of the replica within its role, from 0.
	Index int32 `json:"index"`

	// pod is the UID of the pod that this record is about. Empty for a pod that vanished unseen.
	// +optional
	Pod types.UID `json:"pod,omitempty"`

	// failures is how many failures of that pod's containers have been counted; the kubelet restarts these in place.
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// settled is true when the end of that pod itself has been handled.
	// +optional
	Settled bool `json:"settled,omitempty"`

	// restartsInARow is how many replacements of this replica followed each other quickly. Each makes the next wait longer; ten
	// minutes of training reset it.
	// +optional
	RestartsInARow int32 `json:"restartsInARow,omitempty"`

	// notBefore is the earliest moment for a new pod. Unset means at once.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// lost is true when the replica is not replaced and the elastic job continues without it.
	// +optional
	Lost bool `json:"lost,omitempty"`
}
