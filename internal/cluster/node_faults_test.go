package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// ticking is a marked pod that counts its starts, and appends to a file of the machine while its process runs.
func ticking(w *local.World, name, node, folder string) *corev1.Pod {
	pod := local.Pod(name, `echo start >> /scratch/starts; while :; do echo tick >> /scratch/ticks; sleep 0.05; done`)
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	return withMark(withFolder(onNode(pod, node), folder), w.Namespace+"/"+name)
}

// ticks waits until the process of a ticking pod has done something since now.
func ticks(w *local.World, folder string) {
	w.Helper()
	before := len(read(w, folder+"/ticks"))
	w.Eventually("its process goes on", func() error {
		if len(read(w, folder+"/ticks")) == before {
			return fmt.Errorf("it has done nothing")
		}
		return nil
	})
}

func askNode(w *local.World, node, request string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), local.Timeout)
	defer cancel()
	if err := cluster.AskNode(ctx, w.Client, node, request); err != nil {
		w.Fatalf("%s %s: %v", request, node, err)
	}
}

// untilNode waits until Kubernetes says of a node that it is ready, is not, or is unknown.
func untilNode(w *local.World, node string, want corev1.ConditionStatus) *corev1.Node {
	w.Helper()
	var n *corev1.Node
	w.Eventually(fmt.Sprintf("node %s has Ready=%s", node, want), func() error {
		n = nodeNamed(w, node)
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == want {
				return nil
			}
		}
		return fmt.Errorf("it has %+v", n.Status.Conditions)
	})
	return n
}

func TestNodesFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := local.Start(t, cluster.Options{DataDir: dir, Nodes: 3})
	w := local.On(t, c)
	second, third := t.TempDir(), t.TempDir()
	lost := ticking(w, "third", "trainyard-3", third)
	lost.Spec.Tolerations = []corev1.Toleration{{
		Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(1)),
	}}
	w.Create(ticking(w, "second", "trainyard-2", second), lost)
	ticks(w, second)
	ticks(w, third)

	w.Run(t, "the first node holds the control plane", func(t *testing.T, w *local.World) {
		for _, request := range []string{cluster.NodeKill, cluster.NodeFreeze, cluster.NodeReboot, cluster.NodeRemove} {
			err := cluster.AskNode(context.Background(), w.Client, "trainyard", request)
			if err == nil || !strings.Contains(err.Error(), "it holds the control plane") {
				t.Errorf("%s: %v", request, err)
			}
		}
	})
	w.Run(t, "broken: the node is not ready, its processes go on, new pods wait", func(t *testing.T, w *local.World) {
		askNode(w, "trainyard-2", cluster.NodeBreak)
		untilNode(w, "trainyard-2", corev1.ConditionFalse)
		w.Await("container runtime is down", "describe", "node", "trainyard-2")
		ticks(w, second)
		late := onNode(local.Pod("late", "true"), "trainyard-2")
		late.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		w.Create(late)
		w.Until("late", "scheduled", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
		restored := time.Now().Truncate(time.Second)
		askNode(w, "trainyard-2", cluster.NodeRestore)
		untilNode(w, "trainyard-2", corev1.ConditionTrue)
		end := local.Container(w.UntilPhase("late", corev1.PodSucceeded), "main").State.Terminated
		if end.StartedAt.Time.Before(restored) {
			t.Errorf("the pod started at %s, before the node was restored at %s", end.StartedAt, restored)
		}
	})
	w.Run(t, "rebooted: processes are gone, and kubelet restarts them", func(t *testing.T, w *local.World) {
		before := nodeNamed(w, "trainyard-2").Status.NodeInfo.BootID
		askNode(w, "trainyard-2", cluster.NodeReboot)
		pod := w.Until("second", "restarted", func(p *corev1.Pod) bool {
			return local.Container(p, "main").RestartCount == 1 && local.Container(p, "main").State.Running != nil
		})
		if last := local.Container(pod, "main").LastTerminationState.Terminated; last == nil || last.Reason != "ContainerStatusUnknown" {
			t.Errorf("its last end is %+v", last)
		}
		if got := strings.Count(read(t, second+"/starts"), "start"); got != 2 {
			t.Errorf("it was started %d times", got)
		}
		if untilNode(w, "trainyard-2", corev1.ConditionTrue).Status.NodeInfo.BootID == before {
			t.Error("the node has the same boot ID")
		}
		ticks(w, second)
	})
	w.Run(t, "crashed: the node says so", func(t *testing.T, w *local.World) {
		for _, p := range nodeProcesses(c) {
			if err := syscall.Kill(p.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		for _, node := range threeNodes[1:] {
			w.Await(cluster.NodeKilled, "get", "node", node, "-o", "jsonpath={.metadata.annotations}")
			askNode(w, node, cluster.NodeRestore)
		}
		w.Eventually("both pods run again", func() error {
			for folder, want := range map[string]int{second: 3, third: 2} {
				if got := strings.Count(read(t, folder+"/starts"), "start"); got != want {
					return fmt.Errorf("one was started %d times, want %d", got, want)
				}
			}
			return nil
		})
	})
	w.Run(t, "killed and frozen: Kubernetes loses both nodes", func(t *testing.T, w *local.World) {
		askNode(w, "trainyard-3", cluster.NodeKill)
		if err := left(w.Namespace + "/third"); err != nil {
			t.Errorf("killed: %v", err)
		}
		if n := len(nodeProcesses(c)); n != 1 {
			t.Errorf("%d further nodes run", n)
		}
		askNode(w, "trainyard-2", cluster.NodeFreeze)
		for _, node := range []string{"trainyard-2", "trainyard-3"} {
			untilNode(w, node, corev1.ConditionUnknown)
		}
		ticks(w, second)
		w.Until("third", "evicted", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	})
	w.Run(t, "restored: the frozen pod is the same, the evicted one ends", func(t *testing.T, w *local.World) {
		askNode(w, "trainyard-2", cluster.NodeRestore)
		askNode(w, "trainyard-3", cluster.NodeRestore)
		for _, node := range []string{"trainyard-2", "trainyard-3"} {
			untilNode(w, node, corev1.ConditionTrue)
		}
		w.Eventually("the evicted pod is gone", func() error {
			_, err := w.Client.CoreV1().Pods(w.Namespace).Get(context.Background(), "third", metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		if got := strings.Count(read(t, second+"/starts"), "start"); got != 3 {
			t.Errorf("the frozen pod was started %d times", got)
		}
		ticks(w, second)
	})
	w.Run(t, "removed: it is gone", func(t *testing.T, w *local.World) {
		askNode(w, "trainyard-3", cluster.NodeRemove)
		if _, err := w.Client.CoreV1().Nodes().Get(context.Background(), "trainyard-3", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("its object: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "nodes", "trainyard-3")); !os.IsNotExist(err) {
			t.Errorf("its folder: %v", err)
		}
	})
}

// A cluster of several nodes that is killed leaves no process. The next start may have fewer nodes.
func TestFurtherNodesEndWithTheCluster(t *testing.T) {
	t.Parallel()
	dir, folder := t.TempDir(), t.TempDir()
	up := local.StartUp(t, dir, "--nodes", "2").Ready()
	w := local.At(t, up.Kubeconfig())
	pod := limited(ticking(w, "second", "trainyard-2", folder), "", "256Mi")
	w.Create(pod)
	ticks(w, folder)
	processes := local.Below(up.Pid())
	up.Signal(syscall.SIGKILL)
	up.Wait()
	w.Eventually("all processes are gone", func() error {
		for _, p := range processes {
			if p.Alive() {
				return fmt.Errorf("%s runs", p)
			}
		}
		return left(w.Namespace + "/second")
	})
	again := local.At(t, local.StartUp(t, dir).Ready().Kubeconfig())
	if groups := groupsNamed(cluster.CgroupName(dir) + "-trainyard-2"); len(groups) > 0 {
		t.Errorf("the control groups %v are left", groups)
	}
	if nodes := again.Kubectl("get", "nodes", "-o", "name"); nodes != "node/trainyard\n" {
		t.Errorf("the nodes are %q", nodes)
	}
}
