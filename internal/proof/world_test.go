package proof

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What users, the scheduler, kubelets, the node controller and the garbage collector do.

// pods are the pods that there are, by name.
func (h *history) pods() map[string]*corev1.Pod {
	h.check()
	return h.oracle.pods
}

// pod is one of the job's pods, by the end of its name: worker-0.
func (h *history) pod(name string) *corev1.Pod {
	pod := h.pods()[h.job.Name+"-"+name]
	if pod == nil {
		h.fail("there is no pod %s", name)
		h.check()
	}
	return pod
}

// change lets a kubelet report.
func (h *history) change(pod *corev1.Pod, status func(*corev1.PodStatus)) {
	changed := pod.DeepCopy()
	status(&changed.Status)
	h.must(h.server.admin.Status().Patch(context.Background(), changed, client.MergeFrom(pod)))
	h.chronicle.await(pod.UID, version(changed))
	h.check()
}

// start binds a pod to a node, and its kubelet runs it.
func (h *history) start(pod *corev1.Pod, node string) {
	if pod.Spec.NodeName == "" {
		h.bind(pod, node)
		pod = h.pods()[pod.Name]
	}
	h.note("%s runs on %s", pod.Name, pod.Spec.NodeName)
	h.change(pod, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: h.second()}}
		s.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: "train", ImageID: "train",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: h.second()}},
		}}
	})
}

func (h *history) bind(pod *corev1.Pod, node string) {
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	h.must(h.server.admin.SubResource("binding").Create(context.Background(), pod, binding))
	h.chronicle.until(func() bool { return h.chronicle.newest[pod.UID] > version(pod) })
}

// startAll starts every pod that waits for a node.
func (h *history) startAll() {
	for i, name := range slices.Sorted(maps.Keys(h.pods())) {
		if pod := h.pods()[name]; pod != nil && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			h.start(pod, h.nodes.name(i%nodesEach))
		}
	}
}

// exit ends the training of a pod. Its kubelet starts it again where the pod's restart policy says so.
func (h *history) exit(pod *corev1.Pod, code int32) {
	h.note("%s exits with %d", pod.Name, code)
	again := code != 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
	h.oracle.exits(pod, code, again && pod.DeletionTimestamp == nil)
	end := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: h.lastWords, StartedAt: startOf(pod), FinishedAt: h.second()}
	if code == 0 {
		end.Reason = "Completed"
	}
	h.change(pod, func(s *corev1.PodStatus) {
		c := &s.ContainerStatuses[0]
		switch {
		case again && pod.DeletionTimestamp == nil:
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			c.LastTerminationState = corev1.ContainerState{Terminated: end}
			return
		case code == 0:
			s.Phase = corev1.PodSucceeded
		default:
			s.Phase = corev1.PodFailed
		}
		c.State = corev1.ContainerState{Terminated: end}
	})
}

// again is the kubelet's restart in place.
func (h *history) again(pod *corev1.Pod) {
	h.note("%s runs again in place", pod.Name)
	h.change(pod, func(s *corev1.PodStatus) {
		c := &s.ContainerStatuses[0]
		c.RestartCount++
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: h.second()}}
	})
}

// evict is a node that lacks memory. A training that saves when it is asked to end exits with 0.
func (h *history) evict(pod *corev1.Pod, code int32) {
	h.note("%s is evicted, and exits with %d", pod.Name, code)
	h.oracle.harm(pod, disruption)
	h.change(pod, func(s *corev1.PodStatus) {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: h.second(),
		})
		s.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", StartedAt: startOf(pod), FinishedAt: h.second(),
		}}
	})
}

// refuse is a kubelet that does not take the pod.
func (h *history) refuse(pod *corev1.Pod) {
	h.note("%s is refused by its node", pod.Name)
	h.oracle.truthOf(pod).refused = true
	h.bind(pod, h.nodes.name(0))
	h.change(h.pods()[pod.Name], func(s *corev1.PodStatus) {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, "UnexpectedAdmissionError", "Pod was rejected: no healthy devices present"
	})
}

// remove deletes a pod as a user does, at once or with its grace period.
func (h *history) remove(pod *corev1.Pod, options ...client.DeleteOption) {
	h.note("somebody deletes %s", pod.Name)
	h.oracle.harm(pod, disruption)
	h.oracle.truthOf(pod).removed = true
	h.delete(pod, options...)
}

// delete asks for the deletion of a pod, and waits until the watch shows it.
func (h *history) delete(pod *corev1.Pod, options ...client.DeleteOption) {
	uid := pod.UID
	options = append(options, client.Preconditions{UID: &uid})
	h.must(client.IgnoreNotFound(h.server.admin.Delete(context.Background(), pod.DeepCopy(), options...)))
	c := h.chronicle
	c.until(func() bool {
		_, terminating := c.terminating[uid]
		return terminating && pod.DeletionTimestamp == nil || c.gone[uid]
	})
	h.check()
}

// atOnce is a deletion without a grace period.
const atOnce = client.GracePeriodSeconds(0)

// stopTerminating lets the kubelets end the pods that are being deleted.
func (h *history) stopTerminating() bool {
	stopped := false
	for _, name := range slices.Sorted(maps.Keys(h.pods())) {
		pod := h.pods()[name]
		if pod.DeletionTimestamp != nil && !h.nodes.lost[pod.Spec.NodeName] && !h.nodes.slow[pod.Spec.NodeName] {
			h.note("%s has ended", name)
			h.oracle.truthOf(pod).ended = true
			h.delete(pod, atOnce)
			stopped = true
		}
	}
	return stopped
}

// collectGarbage deletes the children of a job that is gone.
func (h *history) collectGarbage() bool {
	any := false
	for _, obj := range slices.Collect(maps.Values(h.oracle.exists)) {
		owner := metav1.GetControllerOf(obj)
		if owner == nil || owner.UID != h.oracle.job || !h.chronicle.isGone(owner.UID) {
			continue
		}
		if pod, ok := obj.(*corev1.Pod); ok && (pod.DeletionTimestamp != nil || h.nodes.lost[pod.Spec.NodeName]) {
			continue
		} else if ok {
			h.delete(pod)
		} else {
			h.must(client.IgnoreNotFound(h.server.admin.Delete(context.Background(), obj)))
			h.chronicle.awaitGone(obj.GetUID())
		}
		any = true
	}
	h.check()
	return any
}

// second is the moment, as kubelets write it.
func (h *history) second() metav1.Time { return metav1.NewTime(h.now().Truncate(time.Second)) }

func startOf(pod *corev1.Pod) metav1.Time {
	if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil {
		return pod.Status.ContainerStatuses[0].State.Running.StartedAt
	}
	return metav1.Time{}
}

// nodesEach is how many nodes one namespace has.
const nodesEach = 3

// nodes are those that the histories of one namespace have, one history at a time.
type nodes struct {
	server    *server
	namespace string
	// lost are those that are silent or gone, slow those whose kubelets report and end no pod.
	lost, slow map[string]bool
}

// newNodes makes a namespace with its nodes.
func newNodes(s *server, namespace string) (*nodes, error) {
	ctx := context.Background()
	n := &nodes{server: s, namespace: namespace, lost: map[string]bool{}, slow: map[string]bool{}}
	if err := s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); client.IgnoreAlreadyExists(err) != nil {
		return nil, err
	}
	for i := range nodesEach {
		if err := n.create(n.name(i)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *nodes) name(i int) string { return fmt.Sprintf("%s-node-%d", n.namespace, i) }

func (n *nodes) create(name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return client.IgnoreAlreadyExists(n.server.admin.Create(context.Background(), node))
}

// lose makes a node silent, or gone. Half a minute later the control plane deletes its pods; nobody ends them.
func (h *history) loseNode(name, how string) {
	h.note("node %s is %s", name, how)
	ctx, n := context.Background(), h.nodes
	n.lost[name] = true
	node := &corev1.Node{}
	h.must(n.server.admin.Get(ctx, client.ObjectKey{Name: name}, node))
	switch how {
	case "gone":
		h.must(n.server.admin.Delete(ctx, node))
	case "out of service":
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
		h.must(n.server.admin.Update(ctx, node))
	default:
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
		h.must(n.server.admin.Update(ctx, node))
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		h.must(n.server.admin.Status().Update(ctx, node))
	}
	h.advance(h.now().Add(30 * time.Second))
	for _, pod := range slices.Collect(maps.Values(h.pods())) {
		if pod.Spec.NodeName == name && !over(pod) {
			h.remove(pod)
		}
	}
}

// mend brings lost nodes back for the next history.
func (n *nodes) mend() {
	for name := range n.lost {
		_ = n.server.admin.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		_ = n.create(name)
	}
	clear(n.lost)
	clear(n.slow)
}

// over reports whether nothing of a pod runs any more.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// role is the role of a pod, and replica its name without the job's.
func replica(job, pod string) string { return strings.TrimPrefix(pod, job+"-") }

// create creates a pod that the controller did not.
func (h *history) create(pod *corev1.Pod) {
	h.must(h.server.admin.Create(context.Background(), pod))
	h.chronicle.await(pod.UID, version(pod))
	h.check()
}
