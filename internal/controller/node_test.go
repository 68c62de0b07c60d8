package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// A node is lost with a worker on it. The worker's pod is told to go and never does, since nobody is there to stop it; a
// minute after its grace it is removed by force, and the job goes on elsewhere without a charge. Its operator has then seen everything that
// alerts and the dashboard read.
func TestALostNodeDoesNotHoldTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ghost := w.ghost()
	j := w.submit(gang(1, "sleep 600", func(pj *kubeflowv1.PyTorchJob) {
		prefers(&pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec, ghost.Name)
	}))
	w.Eventually("the worker is on the node", func() error {
		if pod := j.pods()["worker-0"]; pod == nil || pod.Spec.NodeName != ghost.Name {
			return fmt.Errorf("there is %+v", pod)
		}
		return nil
	})
	w.pretend("demo-worker-0")
	j.becomes(kubeflowv1.JobRunning)

	w.submit(late("late"))
	w.setReady(ghost, corev1.ConditionUnknown)
	w.Kubectl("cordon", ghost.Name)
	w.Kubectl("delete", "pod", "demo-worker-0", "--wait=false")
	told := w.Get("demo-worker-0").DeletionTimestamp
	s := j.until("runs elsewhere", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 && newest(s).Type == kubeflowv1.JobRunning })
	if s.Retries != 0 || s.Disruptions != 1 || s.LastFailure.Node != ghost.Name {
		t.Errorf("the last failure is %+v, and the status is\n%s", s.LastFailure, describe(s))
	}
	again := j.pods()["worker-0"]
	if waited := again.CreationTimestamp.Sub(told.Time); again.Spec.NodeName == ghost.Name || waited < time.Minute {
		t.Errorf("the worker is on node %s, %s after it was to be gone", again.Spec.NodeName, waited)
	}
	w.exportsWhatIsRead()
}

// ghost is a node without a kubelet, for the pods of this test alone.
func (w *world) ghost() *corev1.Node {
	w.Helper()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("9")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace, Labels: map[string]string{corev1.LabelHostname: w.Namespace}}}
	node.Spec.Taints = []corev1.Taint{{Key: "example.com/ghost", Value: node.Name, Effect: corev1.TaintEffectNoSchedule}}
	node.Status.Capacity, node.Status.Allocatable = room, room
	if err := w.client.Create(context.Background(), node); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = w.client.Delete(context.Background(), node) })
	w.setReady(node, corev1.ConditionTrue)
	return node
}

func (w *world) setReady(node *corev1.Node, ready corev1.ConditionStatus) {
	w.Helper()
	ctx, now := context.Background(), metav1.Now()
	w.Eventually("node "+node.Name+" is told to be ready or not", func() error {
		current, err := w.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Pretended"}}
		_, err = w.Client.CoreV1().Nodes().UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	})
}

// prefers lets a pod run on the ghost, rather than elsewhere while it is there.
func prefers(spec *corev1.PodSpec, ghost string) {
	spec.Tolerations = []corev1.Toleration{
		{Key: "example.com/ghost", Operator: corev1.TolerationOpEqual, Value: ghost},
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	here := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{ghost}}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{here}},
		}},
	}}
}

// pretend says of a pod on the ghost what a kubelet would say of one that runs.
func (w *world) pretend(name string) {
	w.Helper()
	w.Eventually("pod "+name+" is said to run", func() error {
		pod := w.Get(name)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: "none", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
		_, err := w.Client.CoreV1().Pods(w.Namespace).UpdateStatus(context.Background(), pod, metav1.UpdateOptions{})
		return err
	})
}
