package manifest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
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

// Avoid keeps a pod from nodes: the scheduler prefers others, or must take others.
func Avoid(pod *corev1.Pod, a job.Avoidance) {
	if len(a.Prefer)+len(a.Require) == 0 {
		return
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := pod.Spec.Affinity.NodeAffinity
	for _, other := range others(a.Prefer) {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{other}}})
	}
	if len(a.Require) > 0 {
		require(affinity, others(a.Require))
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[job.AnnotationRequiresOtherNodes] = "true"
	}
}

// others are requirements for other nodes than these. One that is about a field takes one value, so each node has its own.
func others(nodes []string) []corev1.NodeSelectorRequirement {
	var all []corev1.NodeSelectorRequirement
	for _, node := range nodes {
		all = append(all, corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}})
	}
	return all
}

// require adds requirements to each term: a node must meet one term in whole. A term without requirements is met by no node, and
// stays so.
func require(affinity *corev1.NodeAffinity, requirements []corev1.NodeSelectorRequirement) {
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: requirements}}}
		return
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		if len(terms[i].MatchExpressions)+len(terms[i].MatchFields) > 0 {
			terms[i].MatchFields = append(terms[i].MatchFields, requirements...)
		}
	}
}
