package manifest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// silenceTolerated is for how many seconds a pod stays on a node whose kubelet has gone silent, before the control plane deletes
// it. Kubernetes' own 300 are for services, whose other replicas go on meanwhile; a gang stands still.
const silenceTolerated = 30

// tolerateSilence lets a pod leave a lost node early, unless its template says how long it stays.
func tolerateSilence(spec *corev1.PodSpec) {
	says := func(t corev1.Toleration) bool {
		all := t.Key == "" && t.Operator == corev1.TolerationOpExists
		return (t.Key == corev1.TaintNodeUnreachable || all) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute)
	}
	if !slices.ContainsFunc(spec.Tolerations, says) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(silenceTolerated)),
		})
	}
}

// avoidNodes lets the scheduler prefer other nodes to these. A preference never keeps a pod from being placed.
func avoidNodes(spec *corev1.PodSpec, nodes []string) {
	if len(nodes) == 0 {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	for _, node := range nodes {
		// A field selector takes one value, so each node is a term of its own.
		other := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}}
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{other}}})
	}
}
