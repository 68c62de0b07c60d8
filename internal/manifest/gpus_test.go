package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trainyard/trainyard/internal/job"
)

func TestGPUs(t *testing.T) {
	with := func(limits ...corev1.ResourceList) *corev1.PodTemplateSpec {
		template := &corev1.PodTemplateSpec{}
		for _, l := range limits {
			template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Limits: l}})
		}
		return template
	}
	m := &Manifest{
		Job: job.Job{Roles: []job.Role{{Name: "Master", Replicas: 1}, {Name: "Worker", Replicas: 3}, {Name: "PS", Replicas: 2}}},
		Templates: map[string]*corev1.PodTemplateSpec{
			"Master": with(corev1.ResourceList{"amd.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("8")}),
			"Worker": with(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}, nil),
			"PS":     with(nil),
		},
	}
	if got := m.GPUs(); got != 25 {
		t.Errorf("%v GPUs, want 25", got)
	}
}
