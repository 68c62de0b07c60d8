package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// AvoidNodes says how pods are kept from nodes that failed the job.
type AvoidNodes string

// The ways to avoid nodes.
const (
	// AvoidPrefer: the scheduler prefers other nodes. The job can always be placed.
	AvoidPrefer AvoidNodes = "Prefer"
	// AvoidRequire: the scheduler must take other nodes, while few are avoided and the job can be placed so.
	AvoidRequire AvoidNodes = "Require"
	// AvoidOff: nodes are not avoided.
	AvoidOff AvoidNodes = "Off"
)

// AvoidedNode is a node that failed the job.
type AvoidedNode struct {
	Node string
	// Until is when the node is no longer avoided.
	Until time.Time
	// Strikes is how often it has failed the job in that time.
	Strikes int32
	Why     string
	// OnlyPreferred: the job could not be placed without the node, so that it is no longer required to.
	OnlyPreferred bool
}

const (
	avoidFirst = time.Hour
	avoidAgain = 24 * time.Hour
	// avoidedKept is how many nodes are remembered. A job that was failed by more has another problem.
	avoidedKept = 20
)

// nodeFaults are the reasons of failures that may be the node's fault, or will be. Reboots, shutdowns and drains are intended, and the
// scheduler avoids a node under pressure by its taint.
var nodeFaults = []string{"DeletionByTaintManager", "DeletionByDeviceTaintManager", "NodeLost", "UnexpectedAdmissionError", "TopologyAffinityError", reasonMaintenance}

// nodeAtFault reports whether a failure may be the node's fault. A pod that was evicted or shut down before it ran is not.
func nodeAtFault(f *Failure) bool {
	return slices.Contains(nodeFaults, f.Reason) || f.Class == Refusal && strings.HasPrefix(f.Reason, "OutOf")
}

// avoid remembers the node of a failure where the failure may be the node's fault.
func (p *pass) avoid(f *Failure) {
	if !nodeAtFault(f) || f.Node == "" || p.Job.AvoidNodes == AvoidOff {
		return
	}
	s := p.next()
	s.AvoidNodes = slices.DeleteFunc(s.AvoidNodes, func(n AvoidedNode) bool { return !p.Now.Before(n.Until) })
	avoided := AvoidedNode{Node: f.Node, Strikes: 1, Until: ceil(p.Now.Add(avoidFirst)), Why: fmt.Sprintf("%s (%s)", f.Reason, f.Class)}
	if at := slices.IndexFunc(s.AvoidNodes, func(n AvoidedNode) bool { return n.Node == f.Node }); at >= 0 {
		avoided.Strikes, avoided.Until, avoided.OnlyPreferred = s.AvoidNodes[at].Strikes+1, ceil(p.Now.Add(avoidAgain)), s.AvoidNodes[at].OnlyPreferred
		s.AvoidNodes = slices.Delete(s.AvoidNodes, at, at+1)
	} else if len(s.AvoidNodes) < avoidedKept { // of more nodes than are remembered, each would be new again and again
		p.emit(true, "NodeAvoided", fmt.Sprintf("avoids node %s from now on: %s", f.Node, f))
		p.about(f)
	}
	s.AvoidNodes = append(s.AvoidNodes, avoided)
	if extra := len(s.AvoidNodes) - avoidedKept; extra > 0 {
		s.AvoidNodes = slices.Delete(s.AvoidNodes, 0, extra)
	}
}

// Avoidance is which nodes a pod is kept from: by preference of others, or by requiring others. Both are sorted.
type Avoidance struct{ Prefer, Require []string }

// Avoided are the nodes that pods created now should not run on. Others are required only where few are avoided: a tenth of the
// number of replicas, or one. A job that avoids more would soon have no node left.
func (s *Status) Avoided(j Job, now time.Time) Avoidance {
	var a Avoidance
	for _, n := range s.AvoidNodes {
		switch {
		case j.AvoidNodes == AvoidOff: // also those that were noted before
		case !now.Before(n.Until):
		case j.AvoidNodes == AvoidRequire && !n.OnlyPreferred:
			a.Require = append(a.Require, n.Node)
		default:
			a.Prefer = append(a.Prefer, n.Node)
		}
	}
	if len(a.Require) > max(1, int(j.total())/10) {
		a.Prefer, a.Require = append(a.Prefer, a.Require...), nil
	}
	slices.Sort(a.Prefer)
	slices.Sort(a.Require)
	return a
}

// AnnotationRequiresOtherNodes on a pod says that it may not run on the nodes that its job avoids.
const AnnotationRequiresOtherNodes = "trainyard.dev/requires-other-nodes"

// otherNodesWait is how long a pod that requires other nodes may wait for one.
const otherNodesWait = 5 * time.Minute

// acceptAvoided replaces pods that wait in vain for other nodes than those that the job avoids: from now on others are only
// preferred. A pod that has a node meanwhile stays, so the pods are read from the API server first.
func (p *pass) acceptAvoided() {
	var waiting []replica
	for _, r := range p.replicas {
		if r.pod == nil || r.pod.Annotations[AnnotationRequiresOtherNodes] == "" || r.pod.Spec.NodeName != "" || p.isLeaving(r.pod) {
			continue
		}
		if due := r.pod.CreationTimestamp.Add(otherNodesWait); p.Now.Before(due) {
			p.requeueAt(due)
		} else {
			waiting = append(waiting, r)
		}
	}
	if len(waiting) == 0 {
		return
	}
	p.Ask.Pods = p.Ask.Pods || !p.Live
	s := p.next()
	for i := range s.AvoidNodes {
		s.AvoidNodes[i].OnlyPreferred = true
	}
	p.emit(true, "NodesAccepted", fmt.Sprintf("accepts the nodes again that it avoids: %s (pod %s) has found no other node for %s",
		waiting[0].Replica, waiting[0].pod.Name, otherNodesWait))
	for _, r := range waiting {
		p.delete(Deletion{Pod: r.pod, Unchanged: true, Why: "it found no node but those that the job avoids"})
	}
}
