package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestGPUsAreGiven(t *testing.T) {
	type step struct {
		pod, container string
		gpus           int
		want           []string // nil: refused
	}
	for _, c := range []struct {
		name   string
		active []types.UID // the pods that kubelet says are there at the last step
		steps  []step
	}{
		{"two containers have different ones", nil, []step{{"a", "x", 1, []string{"0"}}, {"a", "y", 1, []string{"1"}}}},
		{"two pods have different ones", []types.UID{"a"}, []step{{"a", "x", 1, []string{"0"}}, {"b", "x", 1, []string{"1"}}}},
		{"a restarted container has those it had", []types.UID{"a", "b"}, []step{{"a", "x", 1, []string{"0"}}, {"b", "x", 1, []string{"1"}}, {"a", "x", 1, []string{"0"}}}},
		{"a container has as many as it wants", nil, []step{{"a", "x", 3, []string{"0", "1", "2"}}}},
		{"one that wants more than there are is refused", nil, []step{{"a", "x", 4, nil}}},
		{"one that wants more than are free is refused", []types.UID{"a"}, []step{{"a", "x", 2, []string{"0", "1"}}, {"b", "x", 2, nil}}},
		{"a pod that has gone gives them back", []types.UID{"b"}, []step{{"a", "x", 3, []string{"0", "1", "2"}}, {"b", "x", 3, []string{"0", "1", "2"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGPUManager([]string{"0", "1", "2"})
			for i, s := range c.steps {
				if i == len(c.steps)-1 {
					g.active = func() []*corev1.Pod { return podsOf(c.active) }
				} else {
					g.active = func() []*corev1.Pod { return podsOf([]types.UID{"a", "b"}) }
				}
				got, err := g.give(gpuHolder{types.UID(s.pod), s.container}, s.gpus)
				if (err != nil) != (s.want == nil) || !slices.Equal(got, s.want) {
					t.Errorf("step %d: %v, %v", i, got, err)
				}
			}
		})
	}
}

func podsOf(all []types.UID) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, uid := range all {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
	}
	return pods
}
