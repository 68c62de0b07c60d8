package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

func TestPodThatIsTooLargeWaits(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: "4096", corev1.ResourceMemory: "1Pi", gpu: "64"} {
		pod := wanting(local.Pod("large-"+strings.ReplaceAll(string(name), "/", "-"), "true"), name, amount)
		w.Create(pod)
		awaitUnscheduled(w, pod.Name, fmt.Sprintf("0/1 nodes are available: 1 Insufficient %s.", name))
		if w.Get(pod.Name).Status.Phase != corev1.PodPending {
			t.Errorf("%s does not wait", pod.Name)
		}
		w.Await("Insufficient "+string(name), "describe", "pod", pod.Name)
	}
}

// A driver with two GPUs is played by a script, in the PATH of a cluster of the test's own.
func TestPodsShareOutTheMachine(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	script := "#!/bin/sh\necho GPU-aaaa\necho GPU-bbbb\n"
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	w := local.At(t, local.StartUpIn(t, environment, t.TempDir()).Ready().Kubeconfig())

	t.Run("each GPU has one pod, and the next waits until one ends", func(t *testing.T) {
		says := `echo sees $CUDA_VISIBLE_DEVICES; while [ ! -e /go/end ]; do sleep 0.1; done`
		for _, name := range []string{"first", "second", "third"} {
			w.Create(withGo(wanting(local.Pod(name, says), gpu, "1")))
			if name != "third" {
				ready(w, name)
			}
		}
		sees := map[string]string{}
		for _, name := range []string{"first", "second"} {
			sees[name] = w.Await("sees GPU-", "logs", name)
		}
		if sees["first"] == sees["second"] {
			t.Errorf("both pods see %s", sees["first"])
		}
		awaitUnscheduled(w, "third", "Insufficient nvidia.com/gpu")
		run(w, "second", "touch /go/end")
		ready(w, "third")
		if got := w.Await("sees", "logs", "third"); got != sees["second"] {
			t.Errorf("the third pod %s, when the second that has ended %s", got, sees["second"])
		}
		w.Kubectl("delete", "pods", "--all", "--now")
	})
	t.Run("a pod that asks for both has both, one that asks for none has none", func(t *testing.T) {
		w.Create(wanting(local.Pod("both", "echo sees $CUDA_VISIBLE_DEVICES"), gpu, "2"), local.Pod("none", `echo "sees [$CUDA_VISIBLE_DEVICES]"`))
		for name, want := range map[string]string{"both": "sees GPU-aaaa,GPU-bbbb\n", "none": "sees []\n"} {
			w.UntilPhase(name, corev1.PodSucceeded)
			if got := w.Logs(name); got != want {
				t.Errorf("pod %s %s", name, got)
			}
		}
	})
	t.Run("CPUs are filled, and the next waits until one ends", func(t *testing.T) {
		node, err := w.Client.CoreV1().Nodes().Get(context.Background(), "trainyard", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		half := fmt.Sprintf("%dm", node.Status.Allocatable.Cpu().MilliValue()/2)
		for _, name := range []string{"one", "two", "three"} {
			w.Create(wanting(idle(name), corev1.ResourceCPU, half))
			if name != "three" {
				ready(w, name)
			}
		}
		awaitUnscheduled(w, "three", "0/1 nodes are available: 1 Insufficient cpu.")
		w.Kubectl("delete", "pod", "one", "--now")
		ready(w, "three")
		w.Kubectl("delete", "pods", "--all", "--now")
	})
	t.Run("a gang is scheduled as a whole or not at all", func(t *testing.T) {
		w.Apply(`
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
`)
		member := func(name string, gpus string) *corev1.Pod {
			pod := wanting(idle(name), gpu, gpus)
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("gang")}
			return pod
		}
		noneRuns := func(when string) {
			for _, name := range []string{"a", "b", "c"} {
				if node := w.Try("", "get", "pod", name, "-o", "jsonpath={.spec.nodeName}").Stdout; node != "" {
					t.Errorf("pod %s has a node %s", name, when)
				}
			}
		}
		w.Create(wanting(idle("holds-one"), gpu, "1"))
		ready(w, "holds-one")
		w.Create(member("a", "1"), member("b", "0"), idle("another"))
		ready(w, "another") // the scheduler has been through all of them
		noneRuns("before all of its gang are there")
		w.Create(member("c", "1"))
		awaitUnscheduled(w, "c", "")
		noneRuns("though there is one GPU for two of its gang")
		w.Kubectl("delete", "pod", "holds-one", "--now")
		ready(w, "a", "b", "c")
	})
}

// wanting asks for a resource in a pod's container.
func wanting(pod *corev1.Pod, name corev1.ResourceName, amount string) *corev1.Pod {
	quantity := corev1.ResourceList{name: resource.MustParse(amount)}
	pod.Spec.Containers[0].Resources.Requests = quantity
	if name == gpu {
		pod.Spec.Containers[0].Resources.Limits = quantity
	}
	return pod
}

// awaitUnscheduled waits until the scheduler says why a pod waits.
func awaitUnscheduled(w *local.World, pod, why string) {
	w.Helper()
	w.Until(pod, fmt.Sprintf("unscheduled because of %q", why), func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, why)
			}
		}
		return false
	})
}
