package cluster

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/pkg/types"
)

// meter measures what containers use. It reads the runtime's counters at a steady pace and keeps the last two readings,
// because a rate of CPU is a difference.
type meter struct {
	read func(context.Context) ([]*runtimeapi.ContainerStats, error)
	node func() (cpuNanos, memory uint64)

	mu       sync.Mutex
	machine  reading
	readings map[string]reading // by container ID
}

// reading is one container's (or the machine's) use, with the CPU rate since the reading before.
type reading struct {
	pod       types.NamespacedName
	container string
	cpuNanos  uint64
	memory    uint64
	at        time.Time
	window    time.Duration
	cores     float64
}

const meterPeriod = 5 * time.Second

func newMeter(read func(context.Context) ([]*runtimeapi.ContainerStats, error), node func() (uint64, uint64)) *meter {
	return &meter{read: read, node: node, readings: map[string]reading{}}
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
	stats, err := m.read(ctx)
	if err != nil {
		return
	}
	cpu, memory := m.node()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.machine = m.machine.next(reading{cpuNanos: cpu, memory: memory, at: now})
	current := make(map[string]reading, len(stats))
	for _, s := range stats {
		if s.GetCpu().GetUsageCoreNanoSeconds() == nil || s.GetMemory() == nil {
			continue
		}
		l := s.GetAttributes().GetLabels()
		current[s.GetAttributes().GetId()] = m.readings[s.GetAttributes().GetId()].next(reading{
			pod:       types.NamespacedName{Namespace: l[kubelet.KubernetesPodNamespaceLabel], Name: l[kubelet.KubernetesPodNameLabel]},
			container: s.GetAttributes().GetMetadata().GetName(),
			cpuNanos:  s.GetCpu().GetUsageCoreNanoSeconds().GetValue(),
			memory:    s.GetMemory().GetWorkingSetBytes().GetValue(),
			at:        now,
		})
	}
	m.readings = current
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

// whole gives the readings that have a rate, by pod, and the machine's.
func (m *meter) whole() (pods map[types.NamespacedName][]reading, machine reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pods = map[types.NamespacedName][]reading{}
	for _, r := range m.readings {
		if r.window > 0 {
			pods[r.pod] = append(pods[r.pod], r)
		}
	}
	return pods, m.machine
}

func (r reading) timestamp() metav1.Time    { return metav1.NewTime(r.at) }
func (r reading) duration() metav1.Duration { return metav1.Duration{Duration: r.window} }
