package procrun

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trainyard/trainyard/internal/procrun/proc"
)

// ContainerStats reports what a container uses.
func (r *Runtime) ContainerStats(_ context.Context, id string) (*v1.ContainerStats, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	stats, _ := c.stats(proc.ReadAll())
	return stats, nil
}

// ListContainerStats reports what the running containers that match the filter use.
func (r *Runtime) ListContainerStats(_ context.Context, filter *v1.ContainerStatsFilter) ([]*v1.ContainerStats, error) {
	var list []*v1.ContainerStats
	all := proc.ReadAll()
	for _, c := range r.allContainers() {
		if filter.GetId() != "" && filter.GetId() != c.id ||
			filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != c.sandboxID ||
			!hasLabels(c.config.GetLabels(), filter.GetLabelSelector()) ||
			c.state() != v1.ContainerState_CONTAINER_RUNNING {
			continue
		}
		stats, _ := c.stats(all)
		list = append(list, stats)
	}
	return list, nil
}

// sample is a reading of a container's CPU time.
type sample struct {
	at  time.Time
	cpu uint64
}

// stats reports a container's usage, all zero if it does not run.
func (c *container) stats(all proc.Processes) (*v1.ContainerStats, usage) {
	now := time.Now()
	u := c.usage(all)
	rate := c.rate(sample{now, u.cpu})
	return &v1.ContainerStats{
		Attributes: &v1.ContainerAttributes{
			Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		},
		Cpu: u.cpuUsage(now, rate), Memory: u.memoryUsage(now, c.memoryLimit()),
		WritableLayer: &v1.FilesystemUsage{
			Timestamp: now.UnixNano(), FsId: &v1.FilesystemIdentifier{Mountpoint: "/"},
			UsedBytes: &v1.UInt64Value{}, InodesUsed: &v1.UInt64Value{},
		},
		Swap: &v1.SwapUsage{Timestamp: now.UnixNano(), SwapUsageBytes: &v1.UInt64Value{}},
	}, u
}

func (c *container) usage(all proc.Processes) usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.supervisor == nil || c.ended != nil {
		return usage{}
	}
	if c.group != nil {
		if u, err := groupUsage(c.group); err == nil {
			return u
		}
	}
	u := usageOf(all, c.roots())
	// The time of an orphan is lost between its end and its being reaped; the total never goes back.
	u.cpu = max(u.cpu, c.sampled.cpu)
	return u
}

// roots are the processes from which all others of the running container descend.
func (c *container) roots() []int {
	roots := []int{c.supervisor.process.Pid}
	for s := range c.execs {
		roots = append(roots, s.process.Pid)
	}
	return roots
}

// rate returns the CPU time used per second since the reading before.
func (c *container) rate(now sample) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.sampled
	if last.at.IsZero() {
		last.at = time.Unix(0, c.started)
	}
	c.sampled = now
	if now.cpu <= last.cpu || !now.at.After(last.at) {
		return 0
	}
	return uint64(float64(now.cpu-last.cpu) / now.at.Sub(last.at).Seconds())
}

func (c *container) memoryLimit() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.resources.GetMemoryLimitInBytes())
}

func (u usage) cpuUsage(at time.Time, rate uint64) *v1.CpuUsage {
	return &v1.CpuUsage{
		Timestamp: at.UnixNano(), UsageCoreNanoSeconds: &v1.UInt64Value{Value: u.cpu}, UsageNanoCores: &v1.UInt64Value{Value: rate},
	}
}

func (u usage) memoryUsage(at time.Time, limit uint64) *v1.MemoryUsage {
	m := &v1.MemoryUsage{
		Timestamp: at.UnixNano(), WorkingSetBytes: &v1.UInt64Value{Value: u.workingSet},
		UsageBytes: &v1.UInt64Value{Value: u.memory}, RssBytes: &v1.UInt64Value{Value: u.rss},
		PageFaults: &v1.UInt64Value{Value: u.faults}, MajorPageFaults: &v1.UInt64Value{Value: u.majorFaults},
	}
	if limit > 0 {
		m.AvailableBytes = &v1.UInt64Value{Value: limit - min(limit, u.workingSet)}
	}
	return m
}

// PodSandboxStats reports what a pod uses.
func (r *Runtime) PodSandboxStats(_ context.Context, id string) (*v1.PodSandboxStats, error) {
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	return r.podStats(s, proc.ReadAll()), nil
}

// ListPodSandboxStats reports what the ready pods that match the filter use.
func (r *Runtime) ListPodSandboxStats(_ context.Context, filter *v1.PodSandboxStatsFilter) ([]*v1.PodSandboxStats, error) {
	var list []*v1.PodSandboxStats
	all := proc.ReadAll()
	for _, s := range r.allSandboxes() {
		if filter.GetId() != "" && filter.GetId() != s.id ||
			!hasLabels(s.config.GetLabels(), filter.GetLabelSelector()) ||
			s.state() != v1.PodSandboxState_SANDBOX_READY {
			continue
		}
		list = append(list, r.podStats(s, all))
	}
	return list, nil
}

// podStats adds up a pod's running containers.
func (r *Runtime) podStats(s *sandbox, all proc.Processes) *v1.PodSandboxStats {
	now := time.Now()
	var sum usage
	var rate uint64
	linux := &v1.LinuxPodSandboxStats{}
	for _, c := range r.containersOf(s.id) {
		if c.state() != v1.ContainerState_CONTAINER_RUNNING {
			continue
		}
		stats, u := c.stats(all)
		linux.Containers = append(linux.Containers, stats)
		rate += stats.GetCpu().GetUsageNanoCores().GetValue()
		sum.add(u)
		if linux.Network == nil {
			linux.Network = networkUsage(c, now)
		}
	}
	linux.Cpu, linux.Memory = sum.cpuUsage(now, rate), sum.memoryUsage(now, 0)
	linux.Process = &v1.ProcessUsage{Timestamp: now.UnixNano(), ProcessCount: &v1.UInt64Value{Value: sum.processes}}
	return &v1.PodSandboxStats{
		Attributes: &v1.PodSandboxAttributes{
			Id: s.id, Metadata: s.config.GetMetadata(), Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		},
		Linux: linux,
	}
}

func (u *usage) add(other usage) {
	u.cpu += other.cpu
	u.memory += other.memory
	u.workingSet += other.workingSet
	u.rss += other.rss
	u.faults += other.faults
	u.majorFaults += other.majorFaults
	u.processes += other.processes
}

// networkUsage reads what went through the interface of the pod, seen from one of its containers.
func networkUsage(c *container, at time.Time) *v1.NetworkUsage {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", c.supervisor.process.Pid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		name, counters, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(counters)
		if name != "eth0" || len(fields) < 11 {
			continue
		}
		eth0 := &v1.NetworkInterfaceUsage{
			Name:    name,
			RxBytes: &v1.UInt64Value{Value: number(fields[0])}, RxErrors: &v1.UInt64Value{Value: number(fields[2])},
			TxBytes: &v1.UInt64Value{Value: number(fields[8])}, TxErrors: &v1.UInt64Value{Value: number(fields[10])},
		}
		return &v1.NetworkUsage{Timestamp: at.UnixNano(), DefaultInterface: eth0, Interfaces: []*v1.NetworkInterfaceUsage{eth0}}
	}
	return nil
}

// ListMetricDescriptors has none: the metrics are those of the stats.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*v1.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics has none: the metrics are those of the stats.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*v1.PodSandboxMetrics, error) {
	return nil, nil
}
