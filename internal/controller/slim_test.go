package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cache keeps of a pod what the rules read, and nothing else.
func TestASlimPodHasWhatTheRulesRead(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	whole := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "demo-worker-0", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever, Volumes: []corev1.Volume{{Name: "data"}},
			Containers:     []corev1.Container{{Name: "pytorch", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}}}},
			InitContainers: []corev1.Container{{Name: "logs", RestartPolicy: &always, Image: "logs:1"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-0", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Spec: corev1.PodSpec{
			NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "pytorch"}}, InitContainers: []corev1.Container{{Name: "logs", RestartPolicy: &always}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	got, err := slimPod(whole)
	if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A kubelet that says its node is not ready is alive: what it runs may still write a checkpoint. So is one whose node is about to leave.
func TestOnlyASilentNodeIsUnreachable(t *testing.T) {
	node := func(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
		}
		return n
	}
	cordoned, maintained, lost := node(corev1.ConditionTrue), node(corev1.ConditionTrue), node(corev1.ConditionUnknown, corev1.TaintNodeUnreachable)
	cordoned.Spec.Unschedulable, lost.Spec.Unschedulable = true, true
	maintained.Status.Conditions = append(maintained.Status.Conditions, corev1.NodeCondition{Type: "MaintenancePlanned", Status: corev1.ConditionTrue})
	for _, row := range []struct {
		sentence string
		node     *corev1.Node
		want     string
	}{
		{"ready", node(corev1.ConditionTrue), "alive"},
		{"not ready, as its kubelet says", node(corev1.ConditionFalse, corev1.TaintNodeNotReady), "alive"},
		{"silent, but not tainted yet", node(corev1.ConditionUnknown), "alive"},
		{"tainted, but back", node(corev1.ConditionTrue, corev1.TaintNodeUnreachable), "alive"},
		{"silent and tainted", node(corev1.ConditionUnknown, corev1.TaintNodeUnreachable), "unreachable"},
		{"cordoned", cordoned, "leaving"},
		{"about to be removed by an autoscaler", node(corev1.ConditionTrue, "karpenter.sh/disrupted"), "leaving"},
		{"under maintenance", maintained, "leaving"},
		{"cordoned and silent", lost, "unreachable"},
		{"out of service, as an administrator says", node(corev1.ConditionUnknown, corev1.TaintNodeOutOfService), "out of service"},
	} {
		if got := stateOfNode(row.node); string(got) != row.want {
			t.Errorf("%s: %s, want %s", row.sentence, got, row.want)
		}
	}
}
