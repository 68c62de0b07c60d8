package job

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// stuckPodWait is how long a pod may be terminating after its grace period before its node is looked at.
const stuckPodWait = 60 * time.Second

// forceDeleteStuck removes terminating pods whose node is gone, out of service or unreachable, so that no kubelet will remove them. While
// the kubelet reports, a pod is left to its kubelet, however long that takes: two pods of one replica must not run at once.
func (p *pass) forceDeleteStuck() {
	for _, pod := range p.allPods() {
		if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" || forced(pod) {
			continue
		}
		due := pod.DeletionTimestamp.Add(stuckPodWait)
		if p.Now.Before(due) {
			p.requeueAt(due)
			continue
		}
		node := pod.Spec.NodeName
		switch state, looked := p.lookAt(node); {
		case !looked:
		case state == NodeGone || state == NodeOutOfService || state == NodeUnreachable:
			p.delete(Deletion{Pod: pod, Force: true, NodeState: state, Why: "its node " + node + " is " + string(state)})
		default:
			p.wait("pod %s is terminating on node %s for longer than its grace period", pod.Name, node)
			p.requeueAt(p.Now.Add(stuckPodWait))
		}
	}
}

// forced reports whether the pod has been removed by force already: only somebody's finalizer can hold it then.
func forced(pod *corev1.Pod) bool {
	return pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}
