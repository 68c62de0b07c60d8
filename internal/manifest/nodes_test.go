package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
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

func TestAvoidedNodesArePreferredOrRequired(t *testing.T) {
	not := func(node string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: "NotIn", Values: []string{node}}
	}
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: "In", Values: []string{"a"}}
	term := func(expressions, fields []corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: expressions, MatchFields: fields}
	}
	type requirements = []corev1.NodeSelectorRequirement
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	preferred := func(node string) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: 100, Preference: term(nil, requirements{not(node)})}
	}
	for _, row := range []struct {
		sentence string
		avoid    job.Avoidance
		template *corev1.NodeSelector
		want     *corev1.NodeAffinity
	}{
		{"nothing", job.Avoidance{}, nil, nil},
		{"others preferred", job.Avoidance{Prefer: []string{"n1", "n2"}}, nil, &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{preferred("n1"), preferred("n2")},
		}},
		{"others required: all of them in one term", job.Avoidance{Require: []string{"n1", "n2"}}, nil, &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required(term(nil, requirements{not("n1"), not("n2")})),
		}},
		{"others required, in each term of the template but one that no node meets", job.Avoidance{Prefer: []string{"n2"}, Require: []string{"n1"}},
			required(term(requirements{zone}, nil), term(nil, requirements{not("n9")}), term(nil, nil)), &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: required(
					term(requirements{zone}, requirements{not("n1")}), term(nil, requirements{not("n9"), not("n1")}), term(nil, nil)),
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{preferred("n2")},
			}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			pod := &corev1.Pod{}
			if row.template != nil {
				pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: row.template}}
			}
			Avoid(pod, row.avoid)
			var got *corev1.NodeAffinity
			if pod.Spec.Affinity != nil {
				got = pod.Spec.Affinity.NodeAffinity
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if marked := pod.Annotations[job.AnnotationRequiresOtherNodes] != ""; marked != (len(row.avoid.Require) > 0) {
				t.Errorf("marked as requiring others: %v", marked)
			}
		})
	}
}
