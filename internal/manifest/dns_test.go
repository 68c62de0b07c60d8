package manifest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
)

func TestPodsSearchTheDomainOfTheirJob(t *testing.T) {
	const ours = "demo.lab.svc.cluster.local"
	many := slices.Repeat([]string{"example.com"}, 32)
	for _, row := range []struct {
		sentence string
		change   func(*corev1.PodSpec)
		domain   string // of the cluster
		want     []string
	}{
		{"a plain pod", func(*corev1.PodSpec) {}, "", []string{ours}},
		{"another domain of the cluster", func(*corev1.PodSpec) {}, "k8s.example", []string{"demo.lab.svc.k8s.example"}},
		{"after the domains of the template", func(s *corev1.PodSpec) { s.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"example.com"}} }, "", []string{"example.com", ours}},
		{"not twice", func(s *corev1.PodSpec) { s.DNSConfig = &corev1.PodDNSConfig{Searches: []string{ours}} }, "", []string{ours}},
		{"not where there is no room", func(s *corev1.PodSpec) { s.DNSConfig = &corev1.PodDNSConfig{Searches: many} }, "", many},
		{"on the node's network, with the cluster's DNS", func(s *corev1.PodSpec) { s.HostNetwork, s.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet }, "", []string{ours}},
		{"not with the node's DNS", func(s *corev1.PodSpec) { s.DNSPolicy = corev1.DNSDefault }, "", nil},
		{"not on the node's network, which means the node's DNS", func(s *corev1.PodSpec) { s.HostNetwork = true }, "", nil},
		{"not where the template has all settings", func(s *corev1.PodSpec) { s.DNSPolicy = corev1.DNSNone }, "", nil},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			m, spec := &Manifest{Job: job.Job{Namespace: "lab", Name: "demo"}, ClusterDomain: row.domain}, corev1.PodSpec{}
			row.change(&spec)
			m.searchJob(&spec)
			var got []string
			if spec.DNSConfig != nil {
				got = spec.DNSConfig.Searches
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("searches %v, want %v", got, row.want)
			}
		})
	}
}
