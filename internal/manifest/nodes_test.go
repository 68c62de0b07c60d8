package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestHowLongAPodStaysOnASilentNode(t *testing.T) {
	ours := corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(30))}
	gpu := corev1.Toleration{Key: "nvidia.com/gpu", Operator: "Exists", Effect: "NoSchedule"}
	longer := corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: "Exists", TolerationSeconds: new(int64(3600))}
	all := corev1.Toleration{Operator: "Exists"}
	for _, row := range []struct {
		sentence       string
		template, want []corev1.Toleration
	}{
		{"half a minute where nobody says so", nil, []corev1.Toleration{ours}},
		{"beside other tolerations", []corev1.Toleration{gpu}, []corev1.Toleration{gpu, ours}},
		{"as long as the template says", []corev1.Toleration{longer}, []corev1.Toleration{longer}},
		{"for ever where it tolerates everything", []corev1.Toleration{all}, []corev1.Toleration{all}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			spec := corev1.PodSpec{Tolerations: row.template}
			tolerateSilence(&spec)
			if diff := cmp.Diff(row.want, spec.Tolerations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAvoidedNodesAreAPreference(t *testing.T) {
	spec := corev1.PodSpec{}
	avoidNodes(&spec, nil)
	if spec.Affinity != nil {
		t.Error("a pod that avoids nothing has an affinity")
	}
	avoidNodes(&spec, []string{"n1", "n2"})
	terms := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 2 || terms[1].Preference.MatchFields[0].Values[0] != "n2" || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		t.Errorf("the terms are %+v", terms)
	}
}
