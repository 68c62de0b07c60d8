package cluster_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

var threeNodes = []string{"trainyard", "trainyard-2", "trainyard-3"}

// onNode lets a pod run on one node only.
func onNode(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return pod
}

func TestSeveralNodes(t *testing.T) {
	t.Parallel()
	c := local.Start(t, cluster.Options{Nodes: 3, NodeLabels: map[string][]string{corev1.LabelTopologyZone: {"a", "b"}, "rack": {"r1", "r2", "r3"}}})
	w := local.On(t, c)
	w.Apply(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "any"}, "spec": {"selector": {"app": "names"}, "ports": [{"port": 80, "targetPort": 2222}]}}`)
	w.Apply(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "job"}, "spec": {"clusterIP": "None", "selector": {"app": "names"}, "ports": [{"port": 2222}]}}`)
	var pods []string
	for i, node := range threeNodes {
		pod := onNode(serving(fmt.Sprintf("job-%d", i)), node)
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, "job"
		w.Create(pod)
		pods = append(pods, pod.Name)
	}
	ready(w, pods...)
	awaitEndpoints(w, "any", 3)

	w.Run(t, "labels go to the nodes in turn", func(t *testing.T, w *local.World) {
		for i, want := range []string{"a r1", "b r2", "a r3"} {
			n := nodeNamed(w, threeNodes[i])
			if got := n.Labels[corev1.LabelTopologyZone] + " " + n.Labels["rack"]; got != want {
				t.Errorf("%s has %q, want %q", n.Name, got, want)
			}
		}
	})
	w.Run(t, "each node has a process, an identity and addresses of its own", func(t *testing.T, w *local.World) {
		if n := len(nodeProcesses(c)); n != 2 {
			t.Errorf("there are %d processes of further nodes", n)
		}
		seen := map[string]string{}
		for i, pod := range pods {
			n := nodeNamed(w, threeNodes[i])
			for _, unique := range []string{n.Status.NodeInfo.MachineID, n.Status.NodeInfo.BootID, n.Status.Addresses[0].Address, w.Get(pod).Status.PodIP} {
				if seen[unique] != "" {
					t.Errorf("%s has %s, as %s does", n.Name, unique, seen[unique])
				}
				seen[unique] = n.Name
			}
		}
	})
	for _, pod := range pods {
		w.Run(t, "what "+pod+" reaches", func(t *testing.T, w *local.World) {
			for _, peer := range pods {
				for _, host := range []string{w.Get(peer).Status.PodIP, peer + ".job"} {
					if got := run(w, pod, ask(host, 2222)); got != peer {
						t.Errorf("%s answers %q", host, got)
					}
				}
			}
			got := strings.Fields(run(w, pod, askOften("any", 80, 6)))
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, pods) {
				t.Errorf("the Service leads to %v", got)
			}
		})
	}
	w.Run(t, "top shows all nodes and their pods", func(t *testing.T, w *local.World) {
		for _, node := range threeNodes {
			w.Await(node, "top", "nodes")
		}
		for _, pod := range pods {
			w.Await(pod, "top", "pods")
		}
	})
	w.Run(t, "pods are deleted by force on every node", func(t *testing.T, w *local.World) {
		for _, node := range threeNodes {
			mark := w.Namespace + "/" + node
			stubborn := local.Pod("stubborn-"+node, `trap '' TERM; echo up; while :; do sleep 0.1; done`)
			w.Create(withMark(onNode(stubborn, node), mark))
			w.Await("up", "logs", stubborn.Name)
			w.Kubectl("delete", "pod", stubborn.Name, "--wait=false")
			w.Kubectl("delete", "pod", stubborn.Name, "--force", "--grace-period=0")
			w.Eventually("its processes are gone", func() error { return left(mark) })
		}
	})
}

func nodeNamed(w *local.World, name string) *corev1.Node {
	w.Helper()
	n, err := w.Client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// nodeProcesses are those of a cluster's further nodes.
func nodeProcesses(c *cluster.Cluster) []local.Process {
	return slices.DeleteFunc(local.Below(c.Pid()), func(p local.Process) bool {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		return !strings.HasPrefix(string(command), "trainyard-node")
	})
}
