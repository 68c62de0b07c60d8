//go:build prove

package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// A job whose template says nothing about lost nodes runs again within three minutes after its node was lost.
func TestALostNodeCostsThreeMinutes(t *testing.T) {
	w := worldOn(t, local.Start(t, cluster.Options{Nodes: 2}))
	w.operate()
	job := gang(1, "sleep 900")
	for _, spec := range specsOf(job) {
		spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"trainyard-2"}}},
			}}},
		}}
	}
	j := w.submit(job)
	j.becomes(kubeflowv1.JobRunning)
	if node := w.Get("demo-master-0").Spec.NodeName; node != "trainyard-2" {
		t.Fatalf("the master is on node %s", node)
	}
	w.askNode("trainyard-2", cluster.NodeKill)
	lost := time.Now()
	s := j.until("runs again", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 && newest(s).Type == kubeflowv1.JobRunning })
	took := newest(s).LastTransitionTime.Sub(lost)
	t.Logf("it ran again after %s", took)
	if took > 3*time.Minute || s.Retries != 0 || s.Disruptions != 1 {
		t.Errorf("it ran again after %s, and the status is\n%s", took, describe(s))
	}
}
