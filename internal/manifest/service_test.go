package manifest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
)

// Every port of a Service has a name of its own: the API server would refuse the Service otherwise, and the job would fail for
// good.
func TestPortsHaveNamesOfTheirOwn(t *testing.T) {
	for _, row := range []struct {
		sentence string
		ports    []corev1.ContainerPort
		want     []string
	}{
		{"names are kept", []corev1.ContainerPort{{Name: "a", ContainerPort: 1}, {Name: "b", ContainerPort: 2}}, []string{"a", "b"}},
		{"a port without a name gets one", []corev1.ContainerPort{{ContainerPort: 1}, {Name: "b", ContainerPort: 2}}, []string{"port-0", "b"}},
		{"of two with one name the second gets another", []corev1.ContainerPort{{Name: "a", ContainerPort: 1}, {Name: "a", ContainerPort: 2}}, []string{"a", "port-1"}},
		{"a given name that comes later is not taken", []corev1.ContainerPort{{ContainerPort: 1}, {Name: "port-0", ContainerPort: 2}}, []string{"port-1", "port-0"}},
		{"a given name that came before is not taken", []corev1.ContainerPort{{Name: "port-1", ContainerPort: 1}, {ContainerPort: 2}}, []string{"port-1", "port-2"}},
		{"one port on both protocols", []corev1.ContainerPort{{ContainerPort: 1}, {ContainerPort: 1, Protocol: corev1.ProtocolUDP}}, []string{"port-0", "port-1"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Ports: row.ports}}}}
			m := &Manifest{Job: job.Job{Roles: []job.Role{{Name: "Worker", Container: "main"}}}, Templates: map[string]*corev1.PodTemplateSpec{"Worker": template}}
			var names []string
			for _, p := range m.ports() {
				names = append(names, p.Name)
			}
			if !slices.Equal(names, row.want) {
				t.Errorf("the names are %q, want %q", names, row.want)
			}
		})
	}
}
