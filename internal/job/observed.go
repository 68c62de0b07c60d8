package job

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Observed is everything known about one job at one moment.
type Observed struct {
	Now    time.Time
	Job    Job
	Status Status
	// Pods and Children are those that carry the job's name, sorted by name; also those of an earlier job of that name.
	Pods     []*corev1.Pod
	Children []Child
	// Unserved are the kinds of children that the cluster does not serve.
	Unserved map[string]bool
	// Refusal is the last refused creation of a child, nil once a creation succeeded.
	Refusal *Refusal

	// Live says that Pods were read from the API server itself, not from a cache that may lag behind it.
	Live bool
	// Nodes are those the last decision asked about.
	Nodes map[string]NodeState
}

// NodeState is what one look at a node showed.
type NodeState string

// What a look at a node can show.
const (
	NodeHealthy     NodeState = "Healthy"
	NodeUnreachable NodeState = "Unreachable"
	NodeGone        NodeState = "Gone"
	// NodeUnknown means that the node could not be read. It never counts as a failure of the node.
	NodeUnknown NodeState = "Unknown"
)

// Ask names facts without which the rules cannot decide. They are given in the next Observed.
type Ask struct {
	// Pods asks for a list of the job's pods from the API server itself.
	Pods bool
	// Nodes asks for one look at each of these.
	Nodes []string
}

// Decision is what to do about a job. When Ask is not empty it is only that. Otherwise: Status is written as Write
// says, and everything after it is done only once that write has succeeded: deletions, then creations, then events and metrics.
type Decision struct {
	Ask Ask

	Write  Write
	Status Status

	DeletePods     []Deletion
	DeleteChildren []Child
	// CreatePods are of attempt Status.Attempt. They are created after the required ones of CreateChildren and before the
	// others.
	CreatePods     []Replica
	CreateChildren []Child
	// UpdateChildren are written as their Changed says.
	UpdateChildren []Child
	// SizeJob says that the present number of replicas is written into the job, so that an autoscaler finds one.
	SizeJob bool
	// DeleteJob says that the job outlived its TTL.
	DeleteJob bool

	Events  []Event
	Metrics []Metric
	// RequeueAt is when to decide again even if nothing happens; zero for never.
	RequeueAt time.Time
}

// Write says how a decision's status is to be recorded.
type Write string

// How to record a status.
const (
	// WriteNothing: the status is what it was.
	WriteNothing Write = ""
	// WriteLater: only what the pods show has changed. It may be written a few seconds later, with other changes.
	WriteLater Write = "Soon"
	// WriteNow: what the job remembers has changed. Nothing may be done before this is written.
	WriteNow Write = "First"
)

// Deletion is a pod to delete, by its UID.
type Deletion struct {
	Pod *corev1.Pod
	// Force removes the pod without waiting for its node, which is gone or unreachable.
	Force bool
	Why   string
}
