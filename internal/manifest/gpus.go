package manifest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
)

// GPUs is how many all replicas of the job have, of whatever maker.
func (m *Manifest) GPUs() (n float64) {
	for _, role := range m.Job.Roles {
		if template := m.Templates[role.Name]; template != nil {
			n += float64(m.Job.Size(role)) * gpusOf(&template.Spec)
		}
	}
	return n
}

// gpusOf is how many GPUs the containers of a pod have. Init containers use them before the others.
func gpusOf(pod *corev1.PodSpec) (n float64) {
	for _, c := range pod.Containers {
		for name, quantity := range c.Resources.Limits { // a request without a limit is not allowed
			if naming.IsGPU(name) {
				n += quantity.AsApproximateFloat64()
			}
		}
	}
	return n
}
