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
}

const (
	avoidFirst = time.Hour
	avoidAgain = 24 * time.Hour
	// avoidedKept is how many nodes are remembered. A job that was failed by more has another problem.
	avoidedKept = 20
)

// nodeFaults are the reasons of failures that may be the node's fault. Reboots, shutdowns and drains are intended, and the scheduler
// avoids a node under pressure by its taint.
var nodeFaults = []string{"DeletionByTaintManager", "DeletionByDeviceTaintManager", "NodeLost", "UnexpectedAdmissionError", "TopologyAffinityError"}

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
		avoided.Strikes, avoided.Until = s.AvoidNodes[at].Strikes+1, ceil(p.Now.Add(avoidAgain))
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

// Avoided are the nodes that pods created now should not run on, sorted by name.
func (s *Status) Avoided(now time.Time) []string {
	var nodes []string
	for _, n := range s.AvoidNodes {
		if now.Before(n.Until) {
			nodes = append(nodes, n.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
