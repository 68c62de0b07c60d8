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
	// Unreadable says why children of a kind that the job wants cannot be read: the cluster does not serve it, or does not let us.
	Unreadable map[ChildKind]string
	// Rejection is the last rejected creation of a child, nil once a creation succeeded.
	Rejection *Rejection

	// Fresh says that Status is no older than what this process wrote or read from the API server itself. Without it a new
	// process may know an old status, by which it must not act.
	Fresh bool
	// Live says that Pods were read from the API server itself, not from a cache that may lag behind it.
	Live bool
	// Nodes are those the last decision asked about.
	Nodes map[string]NodeState
	// NodesLooked is when this process last looked at nodes for the job, zero if it never has.
	NodesLooked time.Time
}

// NodeState is what one look at a node showed.
type NodeState string

// What a look at a node can show.
const (
	// NodeAlive: its kubelet reports, even if it reports that the node is not ready. What runs there is running.
	NodeAlive NodeState = "alive"
	// NodeUnreachable: its kubelet has gone silent, and the control plane has tainted it as unreachable.
	NodeUnreachable NodeState = "unreachable"
	// NodeOutOfService: an administrator has tainted it so, which says that nothing runs there.
	NodeOutOfService NodeState = "out of service"
	NodeGone         NodeState = "gone"
	// NodeLeaving: its kubelet reports, but it is about to be drained or maintained.
	NodeLeaving NodeState = "leaving"
	// NodeUnknown means that the node could not be read. It never counts as a failure of the node.
	NodeUnknown NodeState = "unknown"
)

// Ask names facts without which the rules cannot decide. They are given in the next Observed.
type Ask struct {
	// Job asks for the job itself from the API server.
	Job bool
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
	// UpdateChildren are written as their Changed says, or with their Members.
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

// Asks reports whether the decision only asks for facts.
func (d *Decision) Asks() bool { return d.Ask.Job || d.Ask.Pods || len(d.Ask.Nodes) > 0 }

// acts reports whether the decision changes anything but the status.
func (d *Decision) acts() bool {
	return len(d.DeletePods)+len(d.DeleteChildren)+len(d.CreatePods)+len(d.CreateChildren)+len(d.UpdateChildren) > 0 || d.SizeJob || d.DeleteJob
}

// Write says how a decision's status is to be recorded.
type Write string

// How to record a status.
const (
	// WriteNothing: the status is what it was.
	WriteNothing Write = ""
	// WriteLater: only what the pods show has changed. It may be written a few seconds later, with other changes.
	WriteLater Write = "Later"
	// WriteNow: what the job remembers has changed. Nothing may be done before this is written.
	WriteNow Write = "Now"
)

// Deletion is a pod to delete, by its UID.
type Deletion struct {
	Pod *corev1.Pod
	// Force removes the pod without waiting for its node, which is gone or unreachable.
	Force bool
	// Unchanged deletes the pod only as it was observed: not if it has found a node since.
	Unchanged bool
	// NodeState is that of its node where the pod is removed by force.
	NodeState NodeState
	Why       string
}
