package cluster_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// limited is a pod with limits.
func limited(pod *corev1.Pod, cpu, memory string) *corev1.Pod {
	limits := corev1.ResourceList{}
	if cpu != "" {
		limits[corev1.ResourceCPU] = quantity(cpu)
	}
	if memory != "" {
		limits[corev1.ResourceMemory] = quantity(memory)
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Limits: limits, Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("10m"), corev1.ResourceMemory: quantity("10Mi")},
	}
	return pod
}

// pythonPod is a pod that runs a Python script.
func pythonPod(name, text string) *corev1.Pod {
	pod := local.Pod(name, "")
	pod.Spec.Containers[0].Command = []string{"/usr/bin/python3", "-c", text}
	return pod
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	greedy := limited(pythonPod("greedy", `x = bytearray(200 << 20)`), "", "64Mi")
	again := limited(pythonPod("again", `x = bytearray(200 << 20)`), "", "64Mi")
	again.Spec.RestartPolicy = corev1.RestartPolicyAlways
	child := limited(local.Pod("child", `/usr/bin/python3 -c 'x = bytearray(200 << 20)'; echo the child ended with $?; exit 1`), "", "64Mi")
	modest := limited(pythonPod("modest", `x = bytearray(30 << 20); print(len(x))`), "", "64Mi")
	w.Create(greedy, again, child, modest)
	w.Run(t, "kills what exceeds it: OOMKilled, 137", func(t *testing.T, w *local.World) {
		end := local.Container(w.UntilPhase("greedy", corev1.PodFailed), "main").State.Terminated
		if end.Reason != "OOMKilled" || end.ExitCode != 137 {
			t.Errorf("it ended as %+v", end)
		}
		w.Await("OOMKilled", "get", "pod", "greedy")
	})
	w.Run(t, "is remembered over a restart", func(t *testing.T, w *local.World) {
		pod := w.Until("again", "restarted", func(p *corev1.Pod) bool {
			return local.Container(p, "main").RestartCount > 0 && local.Container(p, "main").LastTerminationState.Terminated != nil
		})
		if end := local.Container(pod, "main").LastTerminationState.Terminated; end.Reason != "OOMKilled" {
			t.Errorf("it ended as %+v", end)
		}
	})
	w.Run(t, "holds for children too", func(t *testing.T, w *local.World) {
		end := local.Container(w.UntilPhase("child", corev1.PodFailed), "main").State.Terminated
		if end.Reason != "OOMKilled" {
			t.Errorf("it ended as %+v", end)
		}
	})
	w.Run(t, "lets the others be", func(t *testing.T, w *local.World) {
		w.UntilPhase("modest", corev1.PodSucceeded)
	})
}

func TestCPULimit(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(limited(pythonPod("busy", `
import time
begin = time.monotonic()
while time.monotonic() < begin + 4: pass
print(time.process_time() / (time.monotonic() - begin))
`), "200m", ""))
	w.UntilPhase("busy", corev1.PodSucceeded)
	share, err := strconv.ParseFloat(strings.TrimSpace(w.Logs("busy")), 64)
	if err != nil || share < 0.02 || share > 0.25 {
		t.Errorf("a busy container with a limit of 0.2 CPUs used %.3f of one (%v)", share, err)
	}
}

func TestTop(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	const hold = "import time; x = bytearray(100 << 20); time.sleep(1000)"
	w.Create(
		limited(pythonPod("busy", "while True: pass"), "300m", ""),
		pythonPod("large", hold),
		limited(pythonPod("large-limited", hold), "", "200Mi"),
		local.Pod("idle", `sleep 1000`),
	)
	for _, c := range []struct {
		what, pod      string
		column         int
		suffix         string
		atLeast, below int
	}{
		{"shows a busy pod's CPU", "busy", 1, "m", 200, 330},
		{"shows an idle pod's CPU", "idle", 1, "m", 0, 20},
		{"shows an idle pod's memory", "idle", 2, "Mi", 0, 8},
		{"shows a pod's memory", "large", 2, "Mi", 100, 120},
		{"shows a limited pod's memory", "large-limited", 2, "Mi", 100, 120},
	} {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			w.UntilPhase(c.pod, corev1.PodRunning)
			w.Eventually("kubectl top", func() error {
				out := w.Try("", "top", "pod", c.pod, "--no-headers").Stdout
				fields := strings.Fields(out)
				if len(fields) != 3 {
					return fmt.Errorf("printed %q", out)
				}
				n, err := strconv.Atoi(strings.TrimSuffix(fields[c.column], c.suffix))
				if err != nil || n < c.atLeast || n >= c.below {
					return fmt.Errorf("printed %q", out)
				}
				return nil
			})
		})
	}
}
