package cluster_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

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
	pod.Spec.Containers[0].Resources.Limits = limits
	return pod
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	greedy := limited(local.Pod("greedy", python(`x = bytearray(200 << 20)`)), "", "64Mi")
	again := limited(local.Pod("again", python(`x = bytearray(200 << 20)`)), "", "64Mi")
	again.Spec.RestartPolicy = corev1.RestartPolicyAlways
	child := limited(local.Pod("child", `/usr/bin/python3 -c 'x = bytearray(200 << 20)'; echo the child ended with $?; exit 1`), "", "64Mi")
	modest := limited(local.Pod("modest", python(`x = bytearray(30 << 20); print(len(x))`)), "", "64Mi")
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
	throttled := limited(local.Pod("throttled", `
		files=$(awk -F: '$2 == "" || $2 ~ /(^|,)cpu(,|$)/ {print "/sys/fs/cgroup/" $2 $3 "/cpu.stat"}' /proc/self/cgroup)
		until cat $files 2>/dev/null | grep 'nr_throttled [1-9]'; do :; done`), "200m", "")
	throttled.Spec.ActiveDeadlineSeconds = ptr.To(int64(60))
	w.Create(throttled, limited(local.Pod("busy", python(`
import time
begin = time.monotonic()
while time.monotonic() < begin + 4: pass
print(time.process_time() / (time.monotonic() - begin))
`)), "200m", ""))
	w.Run(t, "is kept by a busy container", func(t *testing.T, w *local.World) {
		w.UntilPhase("busy", corev1.PodSucceeded)
		if share, err := strconv.ParseFloat(strings.TrimSpace(w.Logs("busy")), 64); err != nil || share > 0.25 {
			t.Errorf("with a limit of 0.2 CPUs it used %.3f of one (%v)", share, err)
		}
	})
	w.Run(t, "is the kernel's to enforce, which counts", func(t *testing.T, w *local.World) {
		w.UntilPhase("throttled", corev1.PodSucceeded)
	})
}

// A pod that exceeds its own limit on disk space is evicted. That it is not a disruption shows by a condition that is missing.
func TestDiskLimit(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	fill := func(name string, mebibytes int) *corev1.Pod {
		return withScratch(local.Pod(name, fmt.Sprintf("dd if=/dev/zero of=/scratch/fill bs=1M count=%d 2>/dev/null; sleep 1000", mebibytes)))
	}
	limitVolume := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.Volumes[0].EmptyDir.SizeLimit = ptr.To(quantity("2Mi"))
		return pod
	}
	total := fill("total", 4)
	total.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: quantity("2Mi")}
	w.Create(limitVolume(fill("modest", 1)), limitVolume(fill("volume", 4)), total)
	for pod, want := range map[string]string{
		"volume": `Usage of EmptyDir volume "scratch" exceeds the limit "2Mi"`,
		"total":  "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi",
	} {
		w.Run(t, "of a pod is enforced: "+pod, func(t *testing.T, w *local.World) {
			status := w.UntilPhase(pod, corev1.PodFailed).Status
			disruption := slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
			if status.Reason != "Evicted" || !strings.Contains(status.Message, want) || disruption {
				t.Errorf("it ended as %+v", status)
			}
		})
	}
	w.Run(t, "lets the others be", func(_ *testing.T, w *local.World) { w.UntilPhase("modest", corev1.PodRunning) })
}

// busy is a Python script that uses a CPU and writes how much it got of it, in the last five seconds, to /scratch/rate.
const busy = `
import collections, os, time
marks = collections.deque(maxlen=20)
while True:
    begin = time.monotonic()
    marks.append((begin, time.process_time()))
    while time.monotonic() < begin + 0.25: pass
    rate = (time.process_time() - marks[0][1]) / (time.monotonic() - marks[0][0])
    with open("/scratch/new", "w") as f: f.write(str(int(rate * 1000)))
    os.rename("/scratch/new", "/scratch/rate")
`

func TestTop(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	const hold = "import time; x = bytearray(100 << 20); time.sleep(1000)"
	folder := t.TempDir()
	w.Create(
		withFolder(limited(local.Pod("busy", python(busy)), "300m", ""), folder),
		local.Pod("large", python(hold)),
		limited(local.Pod("large-limited", python(hold)), "", "200Mi"),
		local.Pod("idle", `sleep 1000`),
	)
	// shows waits until kubectl top prints a value for a pod with which check is content.
	shows := func(w *local.World, pod string, column int, unit string, check func(got int) error) {
		w.Helper()
		w.Eventually("kubectl top", func() error {
			o := w.Try("", "top", "pod", pod, "--no-headers")
			fields := strings.Fields(o.Stdout)
			if len(fields) != 3 {
				return fmt.Errorf("it printed %q", o.Stdout+o.Stderr)
			}
			got, err := strconv.Atoi(strings.TrimSuffix(fields[column], unit))
			if err != nil {
				return err
			}
			return check(got)
		})
	}
	between := func(low, high int) func(int) error {
		return func(got int) error {
			if got < low || got > high {
				return fmt.Errorf("%d is not between %d and %d", got, low, high)
			}
			return nil
		}
	}
	w.Run(t, "shows the CPU that a busy pod gets", func(t *testing.T, w *local.World) {
		shows(w, "busy", 1, "m", func(got int) error {
			rate, err := strconv.Atoi(read(t, folder+"/rate"))
			if err != nil || rate < 50 {
				return fmt.Errorf("the machine is too busy: the pod gets %dm (%w)", rate, err)
			}
			return between(rate*3/4, rate*5/4)(got)
		})
	})
	w.Run(t, "shows that an idle pod is idle", func(_ *testing.T, w *local.World) {
		shows(w, "idle", 1, "m", between(0, 20))
		shows(w, "idle", 2, "Mi", between(0, 8))
	})
	w.Run(t, "shows the memory that a pod holds, limited or not", func(_ *testing.T, w *local.World) {
		shows(w, "large", 2, "Mi", between(100, 120))
		shows(w, "large-limited", 2, "Mi", between(100, 120))
	})
}
