package job

import (
	"fmt"
	"slices"
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
	// Until is when the node is forgiven.
	Until time.Time
	// Strikes is how often it has failed the job since it was last forgiven.
	Strikes int32
	Why     string
}

const (
	avoidFirst = time.Hour
	avoidAgain = 24 * time.Hour
	// avoidedKept is how many nodes are remembered. A job that was failed by more has another problem.
	avoidedKept = 20
)

// nodeFaults are the reasons of disruptions that may be the node's fault. Reboots, shutdowns and drains are somebody's will, and a
// node under pressure is avoided by its own taint.
var nodeFaults = []string{"DeletionByTaintManager", "DeletionByDeviceTaintManager", "NodeLost"}

// avoid remembers the node of a failure where the failure may be the node's fault.
func (p *pass) avoid(f *Failure) {
	atFault := f.Class == Refusal || f.Class == Disruption && slices.Contains(nodeFaults, f.Reason)
	if !atFault || f.Node == "" || p.Job.AvoidNodes == AvoidOff {
		return
	}
	s := p.next()
	s.AvoidNodes = slices.DeleteFunc(s.AvoidNodes, func(n AvoidedNode) bool { return !p.Now.Before(n.Until) })
	avoided := AvoidedNode{Node: f.Node, Strikes: 1, Until: ceil(p.Now.Add(avoidFirst)), Why: fmt.Sprintf("%s (%s)", f.Reason, f.Class)}
	if at := slices.IndexFunc(s.AvoidNodes, func(n AvoidedNode) bool { return n.Node == f.Node }); at >= 0 {
		avoided.Strikes, avoided.Until = s.AvoidNodes[at].Strikes+1, ceil(p.Now.Add(avoidAgain))
		s.AvoidNodes = slices.Delete(s.AvoidNodes, at, at+1)
	} else {
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
