package cluster

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// firstNode is the name of the node that holds the control plane. The second is called trainyard-2, and so on.
const firstNode = "trainyard"

// MaxNodes is how many nodes a cluster may have: as many as the pod range has blocks besides the one of the nodes' own addresses
// and the one of hostAddress.
const MaxNodes = 30

// nodeSpec is what distinguishes one node of the cluster from the others.
type nodeSpec struct {
	Name   string
	Index  int // from 0, which is the first node
	Labels map[string]string
}

// nodes lists the nodes that the options ask for.
func (o Options) nodes() []nodeSpec {
	all := make([]nodeSpec, o.Nodes)
	for i := range all {
		all[i] = nodeSpec{Name: firstNode, Index: i, Labels: map[string]string{localLabel: "true"}}
		if i > 0 {
			all[i].Name = fmt.Sprintf("%s-%d", firstNode, i+1)
		}
		for key, values := range o.NodeLabels {
			all[i].Labels[key] = values[i%len(values)]
		}
	}
	return all
}

// localLabel marks the nodes of a local cluster.
const localLabel = "trainyard.dev/local"

// first reports whether the node holds the control plane, in whose process it is.
func (s nodeSpec) first() bool { return s.Index == 0 }

// address is the node's own in the pod network.
func (s nodeSpec) address() netip.Addr {
	ip := nodeAddress.As4()
	ip[3] += byte(s.Index)
	return netip.AddrFrom4(ip)
}

// pods is the block of the pod range from which the node's pods get their addresses: 2046 for at most 1000 pods.
func (s nodeSpec) pods() netip.Prefix {
	ip := podRange.Addr().As4()
	ip[2] = byte(s.Index+1) * 8
	return netip.PrefixFrom(netip.AddrFrom4(ip), 21)
}

// dir is where the node keeps its state.
func (s nodeSpec) dir(dataDir string) string {
	if s.first() {
		return dataDir
	}
	return filepath.Join(furtherNodesPath(dataDir), s.Name)
}

// kubeletPath is the folder of a node's kubelet.
func kubeletPath(dataDir, node string) string {
	if node == firstNode {
		return filepath.Join(dataDir, "kubelet")
	}
	return filepath.Join(furtherNodesPath(dataDir), node, "kubelet")
}

// furtherNodesPath is the folder of the nodes besides the first.
func furtherNodesPath(dataDir string) string { return filepath.Join(dataDir, "nodes") }

// cgroup is the name of the control group that holds those of the node's containers.
func (s nodeSpec) cgroup(dataDir string) string {
	if s.first() {
		return cgroupName(dataDir)
	}
	return cgroupName(dataDir) + "-" + s.Name
}

// gpus is the node's share of the machine's GPUs.
func (s nodeSpec) gpus(all []string, nodes int) []string {
	var share []string
	for i := s.Index; i < len(all); i += nodes {
		share = append(share, all[i])
	}
	return share
}

// ParseNodeLabels reads labels of nodes as the command line takes them: KEY=VALUE,VALUE,…, whose values go to the nodes in turn.
func ParseNodeLabels(flags []string) (map[string][]string, error) {
	labels := map[string][]string{}
	for _, flag := range flags {
		key, values, found := strings.Cut(flag, "=")
		if !found {
			return nil, fmt.Errorf("node labels %q: write KEY=VALUE, or KEY=VALUE,VALUE,… for one value per node", flag)
		}
		if _, twice := labels[key]; twice {
			return nil, fmt.Errorf("node labels %q: the key %s is there twice", flag, key)
		}
		labels[key] = strings.Split(values, ",")
	}
	return labels, checkNodeLabels(labels)
}

func checkNodeLabels(labels map[string][]string) error {
	for key, values := range labels {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return fmt.Errorf("node label %q: %s", key, wrong[0])
		}
		domain, _, _ := strings.Cut(key, "/")
		kubernetes := domain != key && (strings.HasSuffix("."+domain, ".kubernetes.io") || strings.HasSuffix("."+domain, ".k8s.io"))
		if kubernetes && !kubeletapis.IsKubeletLabel(key) {
			return fmt.Errorf("node label %q: of kubernetes.io and k8s.io only these are free: %s", key, strings.Join(kubeletapis.KubeletLabels(), ", "))
		}
		for _, value := range values {
			if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
				return fmt.Errorf("node label %s=%s: %s", key, value, wrong[0])
			}
		}
	}
	return nil
}
