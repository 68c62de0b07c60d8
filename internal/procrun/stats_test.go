package procrun

import (
	"context"
	"testing"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A container that takes 60 MB and all of a processor is seen to, with a control group and without.
func TestStats(t *testing.T) {
	for name, change := range map[string]func(*v1.ContainerConfig){
		"limited": memory(500 << 20), "unlimited": memory(0),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withCgroup)
			pod := w.pod("busy")
			idle := w.start(pod, "exec sleep 1000", change)
			busy := w.start(pod, "head -c 60000000 /dev/zero | tail -c 60000000 | (cat >/dev/shm/x; while :; do :; done)", change)
			stats := func(id string) *v1.ContainerStats {
				s, err := w.ContainerStats(context.Background(), id)
				w.must(err)
				return s
			}
			w.eventually(func() bool {
				s := stats(busy)
				return s.GetCpu().GetUsageCoreNanoSeconds().GetValue() > 300e6 && s.GetCpu().GetUsageNanoCores().GetValue() > 100e6
			}, "the busy one uses the processor")
			if got := stats(idle).GetCpu().GetUsageCoreNanoSeconds().GetValue(); got > 250e6 {
				t.Errorf("the idle one used %d ns", got)
			}
			list, err := w.ListContainerStats(context.Background(), &v1.ContainerStatsFilter{PodSandboxId: pod})
			if err != nil || len(list) != 2 {
				t.Errorf("list is %v, %v", list, err)
			}
			whole, err := w.PodSandboxStats(context.Background(), pod)
			w.must(err)
			linux := whole.GetLinux()
			if linux.GetCpu().GetUsageCoreNanoSeconds().GetValue() < 300e6 || linux.GetProcess().GetProcessCount().GetValue() < 4 ||
				len(linux.GetContainers()) != 2 || linux.GetNetwork().GetDefaultInterface().GetName() != "eth0" {
				t.Errorf("the pod's are %v", linux)
			}
			all, err := w.ListPodSandboxStats(context.Background(), nil)
			if err != nil || len(all) != 1 {
				t.Errorf("pods are %v, %v", all, err)
			}
		})
	}
}

func TestMemoryStats(t *testing.T) {
	w := newWorld(t, withCgroup)
	pod := w.pod("large")
	for name, change := range map[string]func(*v1.ContainerConfig){"limited": memory(500 << 20), "unlimited": memory(0)} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.start(pod, "", func(c *v1.ContainerConfig) {
				change(c)
				c.Command = []string{binary, "take", "80000000"}
			})
			w.logged(id, "taken")
			s, err := w.ContainerStats(context.Background(), id)
			w.must(err)
			for what, got := range map[string]uint64{
				"working set": s.GetMemory().GetWorkingSetBytes().GetValue(), "RSS": s.GetMemory().GetRssBytes().GetValue(),
			} {
				if got < 80_000_000 || got > 100_000_000 {
					t.Errorf("%s is %d", what, got)
				}
			}
			limited := name == "limited"
			if available := s.GetMemory().GetAvailableBytes(); (available != nil) != limited {
				t.Errorf("available is %v", available)
			}
		})
	}
}
