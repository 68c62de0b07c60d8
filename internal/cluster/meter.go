package cluster

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis"
	kubelet "k8s.io/kubelet/pkg/types"
)

// meter measures what containers use. It reads the first node's runtime at a steady pace, takes what further nodes report, and
// keeps the last two readings, because a rate of CPU is a difference.
type meter struct {
	read func(context.Context) ([]containerUsage, error)
	node func() (cpuNanos, memory uint64)

	mu      sync.Mutex
	machine reading
	nodes   map[string]nodeReadings
}

// nodeReadings are those of one node's containers, by container ID.
type nodeReadings struct {
	at         time.Time
	containers map[string]reading
}

// containerUsage is what a container has used and uses.
type containerUsage struct {
	ID        string
	Pod       types.NamespacedName
	Container string
	CPUNanos  uint64
	Memory    uint64
	// GPU is how many of its GPUs are busy, GPUMemory how many bytes of their memory are taken.
	GPU       float64
	GPUMemory uint64
	PodUID    string
}

// usageOf reads a runtime's counters, and what GPUs do.
func usageOf(ctx context.Context, runtime cri.ContainerStatsManager, gpus *gpuManager) ([]containerUsage, error) {
	stats, err := runtime.ListContainerStats(ctx, nil)
	var all []containerUsage
	for _, s := range stats {
		if s.GetCpu().GetUsageCoreNanoSeconds() == nil || s.GetMemory() == nil {
			continue
		}
		l := s.GetAttributes().GetLabels()
		all = append(all, containerUsage{
			ID:        s.GetAttributes().GetId(),
			Pod:       types.NamespacedName{Namespace: l[kubelet.KubernetesPodNamespaceLabel], Name: l[kubelet.KubernetesPodNameLabel]},
			Container: s.GetAttributes().GetMetadata().GetName(),
			CPUNanos:  s.GetCpu().GetUsageCoreNanoSeconds().GetValue(),
			Memory:    s.GetMemory().GetWorkingSetBytes().GetValue(),
			PodUID:    l[kubelet.KubernetesPodUIDLabel],
		})
	}
	gpus.addUse(ctx, all)
	return all, err
}

// reading is one container's (or the machine's) use, with the CPU rate since the reading before.
type reading struct {
	pod       types.NamespacedName
	container string
	cpuNanos  uint64
	memory    uint64
	gpu       float64
	gpuMemory uint64
	at        time.Time
	window    time.Duration
	cores     float64
}

const (
	meterPeriod = 5 * time.Second
	// staleAfter is how old readings may be: those of a node that is silent are not shown for long.
	staleAfter = 3 * meterPeriod
)

func newMeter(node func() (uint64, uint64)) *meter {
	return &meter{node: node, nodes: map[string]nodeReadings{}}
}

// run measures until ctx ends.
func (m *meter) run(ctx context.Context) {
	tick := time.NewTicker(meterPeriod)
	defer tick.Stop()
	for {
		m.measure(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (m *meter) measure(ctx context.Context, now time.Time) {
	usage, err := m.read(ctx)
	if err != nil {
		return
	}
	cpu, memory := m.node()
	m.mu.Lock()
	m.machine = m.machine.next(reading{cpuNanos: cpu, memory: memory, at: now})
	m.mu.Unlock()
	m.record(firstNode, usage, now)
}

// record takes what the containers of a node use now.
func (m *meter) record(node string, usage []containerUsage, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, current := m.nodes[node].containers, make(map[string]reading, len(usage))
	for _, u := range usage {
		current[u.ID] = last[u.ID].next(reading{pod: u.Pod, container: u.Container, cpuNanos: u.CPUNanos, memory: u.Memory, gpu: u.GPU, gpuMemory: u.GPUMemory, at: now})
	}
	m.nodes[node] = nodeReadings{at: now, containers: current}
}

// forget drops the readings of a node that has ended.
func (m *meter) forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.nodes, node)
}

// next is the reading that follows r, with its rate.
func (r reading) next(n reading) reading {
	if r.at.IsZero() || n.cpuNanos < r.cpuNanos || !n.at.After(r.at) {
		return n
	}
	n.window = n.at.Sub(r.at)
	n.cores = float64(n.cpuNanos-r.cpuNanos) / float64(n.window)
	return n
}

// usage is the reading as Kubernetes writes it.
func (r reading) usage() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(r.cores*1e9), resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(int64(r.memory), resource.BinarySI),
	}
}

// pods gives the readings of containers that have a rate, by pod.
func (m *meter) pods() map[types.NamespacedName][]reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	pods := map[types.NamespacedName][]reading{}
	for _, n := range m.nodes {
		if time.Since(n.at) > staleAfter {
			continue
		}
		for _, r := range n.containers {
			if r.window > 0 {
				pods[r.pod] = append(pods[r.pod], r)
			}
		}
	}
	return pods
}

// uses gives what each pod uses.
func (m *meter) uses() map[types.NamespacedName]Use {
	uses := map[types.NamespacedName]Use{}
	for pod, readings := range m.pods() {
		var sum Use
		for _, r := range readings {
			sum.Cores, sum.Memory = sum.Cores+r.cores, sum.Memory+int64(r.memory)
			sum.GPU, sum.GPUMemory = sum.GPU+r.gpu, sum.GPUMemory+int64(r.gpuMemory)
		}
		uses[pod] = sum
	}
	return uses
}

// nodeUse gives what each node uses: the first one what the whole machine does, a further one what its containers do.
func (m *meter) nodeUse() map[string]reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	use := map[string]reading{}
	for name, n := range m.nodes {
		sum := reading{at: n.at, window: meterPeriod}
		for _, r := range n.containers {
			sum.cores, sum.memory = sum.cores+r.cores, sum.memory+r.memory
		}
		if name == firstNode {
			sum = m.machine
		}
		if sum.window > 0 && time.Since(n.at) <= staleAfter {
			use[name] = sum
		}
	}
	return use
}

func (r reading) timestamp() metav1.Time    { return metav1.NewTime(r.at) }
func (r reading) duration() metav1.Duration { return metav1.Duration{Duration: r.window} }
