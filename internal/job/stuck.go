package job

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// patience is how long a pod may be terminating beyond its own grace before its node is looked at.
const patience = 60 * time.Second

// forceStuck removes pods that will never go by themselves because the node that should stop them is gone or cannot be
// reached. On a healthy node a pod is left to its kubelet, however long that takes: two pods of one replica must not run
// at once.
func (p *pass) forceStuck() {
	for _, pod := range p.allPods() {
		if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" || forced(pod) {
			continue
		}
		due := pod.DeletionTimestamp.Add(patience)
		if p.Now.Before(due) {
			p.lookAt(due)
			continue
		}
		node := pod.Spec.NodeName
		switch state, looked := p.Nodes[node]; {
		case !looked:
			if !slices.Contains(p.Ask.Nodes, node) {
				p.Ask.Nodes = append(p.Ask.Nodes, node)
			}
		case state == NodeGone || state == NodeUnreachable:
			p.DeletePods = append(p.DeletePods, Deletion{Pod: pod, Force: true, Why: "its node " + node + " is " + string(state)})
		default:
			p.wait("pod %s is terminating on node %s for longer than its grace period", pod.Name, node)
			p.lookAt(p.Now.Add(patience))
		}
	}
}

// forced tells whether the pod has been removed by force already: only somebody's finalizer can hold it then.
func forced(pod *corev1.Pod) bool {
	return pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}
