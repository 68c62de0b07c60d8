package manifest

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
)

// serviceNames are the Services a job needs: one over all its pods, and one of the own name of each replica where others meet.
func (m *Manifest) serviceNames() []string {
	names := []string{m.Job.Name}
	for _, r := range m.met() {
		names = append(names, m.Job.PodName(r))
	}
	return names
}

// met are the replicas that others find by their bare names: the leader, and who holds an elastic rendezvous.
func (m *Manifest) met() []job.Replica {
	if !m.Rendezvous {
		return nil
	}
	met := []job.Replica{m.Leader}
	if e := m.Job.Elastic; e != nil && e.Anchored && e.Role != m.Leader.Role {
		met = append(met, job.Replica{Role: e.Role})
	}
	return met
}

// service is the headless Service of that name. It publishes pods that are not ready: a replica becomes ready only by
// finding the others.
func (m *Manifest) service(name string) *corev1.Service {
	labels := m.jobLabels()
	for _, r := range m.met() {
		if name == m.Job.PodName(r) {
			labels = m.replicaLabels(r)
		}
	}
	return &corev1.Service{
		ObjectMeta: m.childMeta(name, labels),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: labels, PublishNotReadyAddresses: true, Ports: m.ports(),
		},
	}
}

// ports are those of all training containers, each once. A port keeps its own name where it is the first of that name; the
// others get a name that no port has, because a Service must tell its ports apart.
func (m *Manifest) ports() []corev1.ServicePort {
	var ports []corev1.ServicePort
	known, names := map[string]bool{}, map[string]bool{}
	for _, role := range m.Job.Roles {
		for _, p := range trainingPorts(m.Templates[role.Name], role.Container) {
			protocol := cmp.Or(p.Protocol, corev1.ProtocolTCP)
			key := fmt.Sprintf("%s-%d", protocol, p.ContainerPort)
			if known[key] {
				continue
			}
			known[key] = true
			port := corev1.ServicePort{Port: p.ContainerPort, Protocol: protocol}
			if !names[p.Name] {
				port.Name = p.Name
				names[p.Name] = p.Name != ""
			}
			ports = append(ports, port)
		}
	}
	for i := range ports {
		for n := i; ports[i].Name == ""; n++ {
			if name := fmt.Sprintf("port-%d", n); !names[name] {
				ports[i].Name, names[name] = name, true
			}
		}
	}
	return ports
}

func trainingPorts(template *corev1.PodTemplateSpec, container string) []corev1.ContainerPort {
	name := job.TrainingContainer(template.Spec, container)
	for _, c := range template.Spec.Containers {
		if c.Name == name {
			return c.Ports
		}
	}
	return nil
}

// Port is the number of the training container's port of that name, or the given one where it has none.
func Port(template *corev1.PodTemplateSpec, container, name string, otherwise int32) int32 {
	for _, p := range trainingPorts(template, container) {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return otherwise
}
