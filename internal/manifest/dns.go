package manifest

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// DefaultClusterDomain is the DNS domain of a cluster that has no other.
const DefaultClusterDomain = "cluster.local"

// mostSearchDomains is how many search domains the API server accepts in a pod.
const mostSearchDomains = 32

// searchJob lets the replicas of a job find each other by the bare names of their pods, as with Training Operator 1.9: hostfiles have
// them. The domain comes last, so that it hides no other name. A pod that does not ask the cluster's DNS, or whose policy None says
// that its template has all settings, is left alone.
func (m *Manifest) searchJob(spec *corev1.PodSpec) {
	asksCluster := spec.DNSPolicy == corev1.DNSClusterFirstWithHostNet ||
		!spec.HostNetwork && (spec.DNSPolicy == corev1.DNSClusterFirst || spec.DNSPolicy == "")
	if !asksCluster {
		return
	}
	if spec.DNSConfig == nil {
		spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	domain := m.Job.Name + "." + cmp.Or(m.Job.Namespace, corev1.NamespaceDefault) + ".svc." + cmp.Or(m.ClusterDomain, DefaultClusterDomain)
	if len(spec.DNSConfig.Searches) < mostSearchDomains && !slices.Contains(spec.DNSConfig.Searches, domain) {
		spec.DNSConfig.Searches = append(spec.DNSConfig.Searches, domain)
	}
}
