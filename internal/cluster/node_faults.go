package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// What a person can do to a node, as the value of its annotation NodeRequest.
const (
	NodeKill    = "kill"    // kubelet and the pods' processes are gone
	NodeFreeze  = "freeze"  // kubelet is stopped, the pods' processes go on
	NodeBreak   = "break"   // the container runtime refuses everything, so that kubelet reports the node as not ready
	NodeReboot  = "reboot"  // the pods' processes are gone, kubelet comes back with its records
	NodeRestore = "restore" // whatever was done is undone
	NodeRemove  = "remove"  // the node is gone for good
)

// What a node is after that, as the value of its annotation NodeState. One that works has none.
const (
	NodeKilled = "killed"
	NodeFrozen = "frozen"
	NodeBroken = "broken"
)

// faulty is a node that can be made to fail. apply carries out a request and returns the state of the node afterwards.
type faulty interface {
	apply(request string) (state string, err error)
}

func (n *furtherNode) apply(request string) (string, error) {
	n.mu.Lock()
	state := n.state
	err := n.fail(request)
	if err == nil {
		n.state = stateAfter(request)
	}
	stopped := n.process == nil
	n.mu.Unlock()
	if err != nil {
		return state, err
	}
	if stopped && (request == NodeReboot || request == NodeRestore) {
		if err := n.start(); err != nil {
			return NodeKilled, err
		}
	}
	return stateAfter(request), nil
}

func stateAfter(request string) string {
	return map[string]string{NodeKill: NodeKilled, NodeFreeze: NodeFrozen, NodeBreak: NodeBroken}[request]
}

// fail changes the node's process as a request says; starting it again is left to the caller.
func (n *furtherNode) fail(request string) error {
	if n.process == nil && (request == NodeFreeze || request == NodeBreak) {
		return fmt.Errorf("it does not run: restore it first")
	}
	if n.state == NodeFrozen && (request == NodeBreak || request == NodeFreeze) {
		return fmt.Errorf("it is frozen: restore it first")
	}
	switch request {
	case NodeKill, NodeReboot:
		n.end()
	case NodeRemove:
		n.end()
		return os.RemoveAll(n.spec.dir(n.dataDir))
	case NodeFreeze:
		return n.freeze()
	case NodeBreak:
		n.setRefusing(true)
	case NodeRestore:
		if n.process != nil {
			n.setRefusing(false)
			return n.process.Signal(syscall.SIGCONT)
		}
	default:
		return fmt.Errorf("there is no request %q", request)
	}
	return nil
}

func (n *furtherNode) setRefusing(refuse bool) { n.command(nodeCommand{Refuse: &refuse}) }

// firstNodeFaults are those of the first node: it cannot be without the control plane.
type firstNodeFaults struct {
	mu      sync.Mutex
	runtime *refusingRuntime
}

func (n *firstNodeFaults) apply(request string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch request {
	case NodeBreak, NodeRestore:
		n.runtime.refuse.Store(request == NodeBreak)
		return stateAfter(request), nil
	}
	state := ""
	if n.runtime.refuse.Load() {
		state = NodeBroken
	}
	return state, fmt.Errorf("it holds the control plane: only break, restore and drain are possible")
}

// stopNodes ends the further nodes, all at once, in order.
func (c *process) stopNodes(ctx context.Context) {
	var all sync.WaitGroup
	for _, n := range c.nodes {
		all.Go(func() { n.stop(ctx) })
	}
	all.Wait()
}
