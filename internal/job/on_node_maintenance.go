package job

import (
	"slices"
	"time"
)

// reasonMaintenance is the reason of a disruption that the job causes itself: it leaves a node before others stop its pods there.
const reasonMaintenance = "NodeMaintenance"

const (
	// nodeLookPeriod is how long a job that leaves nodes before their maintenance waits between two looks at its nodes.
	nodeLookPeriod = 30 * time.Second
	// nodeLookShare is what each node adds to that: a look at a node is a request, and a job makes ten a second at most.
	nodeLookShare = 100 * time.Millisecond
)

// leaveNodes finds replicas that train on nodes that are about to be drained or maintained, if the job is to leave such nodes. Each is
// an incident that the job causes itself, so the job stays where the incident could only harm it: where the restart policy or
// max-disruptions would end the job.
//
// A node that is avoided already is not left again. Else a job whose pods tolerate the node, or find no other, would never train.
func (p *pass) leaveNodes() {
	if !p.Job.LeavesNodes || p.Job.AvoidNodes == AvoidOff {
		return
	}
	var nodes []string
	for _, r := range p.replicas {
		if r.pod == nil || !r.running || p.isLeaving(r.pod) || p.handled(r) || p.done(r.Replica) || p.avoids(r.pod.Spec.NodeName) {
			continue
		}
		node := r.pod.Spec.NodeName
		known := slices.Contains(nodes, node)
		if !known {
			nodes = append(nodes, node)
		}
		if p.Nodes[node] != NodeLeaving || known && p.scope() == ScopeJob { // one incident restarts a gang
			continue
		}
		f := &Failure{
			Replica: r.Replica, Pod: r.pod.Name, Node: node, Class: Disruption, Reason: reasonMaintenance,
			Message: "the node is about to be drained or maintained",
		}
		if retry, _ := r.role.RestartPolicy.retries(f); retry && p.mayBeDisrupted() {
			p.addIncident(r, f, 0)
		}
	}
	p.lookAtNodes(nodes)
}

// mayBeDisrupted reports whether max-disruptions allows one more than there are incidents in this pass.
func (p *pass) mayBeDisrupted() bool {
	limit := p.Job.Policy.MaxDisruptions
	return limit == nil || p.next().Disruptions+int32(len(p.incidents)) < *limit
}

// lookAtNodes asks about the nodes when it is time to.
func (p *pass) lookAtNodes(nodes []string) {
	if len(nodes) == 0 {
		return
	}
	if due := p.NodesLooked.Add(nodeLookPeriod + time.Duration(len(nodes))*nodeLookShare); p.Now.Before(due) {
		p.requeueAt(due)
		return
	}
	for _, node := range nodes {
		p.lookAt(node)
	}
	p.requeueAt(p.Now.Add(nodeLookPeriod + time.Duration(len(nodes))*nodeLookShare))
}

// lookAt is what a look at a node has shown. Without one it asks for it.
func (p *pass) lookAt(node string) (state NodeState, looked bool) {
	state, looked = p.Nodes[node]
	if !looked && !slices.Contains(p.Ask.Nodes, node) {
		p.Ask.Nodes = append(p.Ask.Nodes, node)
	}
	return state, looked
}

// avoids reports whether the job avoids a node now.
func (p *pass) avoids(node string) bool {
	return slices.ContainsFunc(p.next().AvoidNodes, func(n AvoidedNode) bool { return n.Node == node && p.Now.Before(n.Until) })
}
