package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/status"
)

// gpuResource is the resource that pods ask GPUs by.
const gpuResource corev1.ResourceName = "nvidia.com/gpu"

// gpuTimeout is how long nvidia-smi may take. The first call after the machine's start takes seconds; with a broken driver it never
// ends, not even when it is killed.
const gpuTimeout = 30 * time.Second

// findGPUs lists the UUIDs of the machine's NVIDIA GPUs; without a driver there are none. The note says that it could not find out.
func findGPUs(ctx context.Context, timeout time.Duration) (gpus []string, note string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader").Output()
		if err != nil {
			out = nil
		}
		found <- strings.Fields(string(out))
	}()
	select {
	case gpus = <-found:
		if ctx.Err() == nil {
			return gpus, ""
		}
	case <-ctx.Done():
	}
	return nil, fmt.Sprintf("pods get no GPUs: nvidia-smi has not answered for %s", timeout)
}

// gpuManager is kubelet's view of the machine's devices. It counts GPUs and the disk as node capacity and gives each container
// GPUs of its own through CUDA_VISIBLE_DEVICES. Limits of CPU and memory are the runtime's work.
type gpuManager struct {
	cm.ContainerManager
	gpus []string
	disk uint64 // the size of the file system that pods use

	mu     sync.Mutex
	active cm.ActivePodsFunc
	given  map[gpuHolder][]string
	asking atomic.Bool // nvidia-smi is asked what the GPUs do
}

type gpuHolder struct {
	pod       types.UID
	container string
	init      bool // it ends before the pod's other containers start, which then get its GPUs
}

func newGPUManager(gpus []string) *gpuManager {
	return &gpuManager{ContainerManager: cm.NewStubContainerManager(), gpus: gpus, given: map[gpuHolder][]string{}}
}

// GetPodCgroupRoot is the group that kubelet measures as that of all pods. They have none of their own, so it is the whole machine's.
func (g *gpuManager) GetPodCgroupRoot() string { return wholeMachine }

// Start keeps the way to ask which pods still hold their GPUs.
func (g *gpuManager) Start(ctx context.Context, node *corev1.Node, active cm.ActivePodsFunc, getNode cm.GetNodeFunc, sources config.SourcesReady, pods status.PodStatusProvider, runtime cri.RuntimeService, localStorage bool) error {
	g.mu.Lock()
	g.active = active
	g.mu.Unlock()
	return g.ContainerManager.Start(ctx, node, active, getNode, sources, pods, runtime, localStorage)
}

// GetCapacity is the disk of which pods may request a part.
func (g *gpuManager) GetCapacity(klog.Logger, bool) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(g.disk), resource.BinarySI)}
}

// GetDevicePluginResourceCapacity is the number of GPUs, where there are any.
func (g *gpuManager) GetDevicePluginResourceCapacity(klog.Logger) (capacity, allocatable corev1.ResourceList, removed []string) {
	if len(g.gpus) == 0 {
		return nil, nil, nil
	}
	all := corev1.ResourceList{gpuResource: *resource.NewQuantity(int64(len(g.gpus)), resource.DecimalSI)}
	return all, all, nil
}

// GetResources gives a container the GPUs it asks for. A restarted container gets those it had.
func (g *gpuManager) GetResources(_ context.Context, pod *corev1.Pod, c *corev1.Container) (*container.RunContainerOptions, error) {
	wanted := c.Resources.Limits[gpuResource]
	if wanted.IsZero() {
		return &container.RunContainerOptions{}, nil
	}
	init := slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool {
		return i.Name == c.Name && (i.RestartPolicy == nil || *i.RestartPolicy != corev1.ContainerRestartPolicyAlways)
	})
	gpus, err := g.give(gpuHolder{pod.UID, c.Name, init}, int(wanted.Value()))
	if err != nil {
		return nil, fmt.Errorf("container %s of pod %s/%s: %w", c.Name, pod.Namespace, pod.Name, err)
	}
	visible := strings.Join(gpus, ",")
	return &container.RunContainerOptions{Envs: []container.EnvVar{
		{Name: "CUDA_VISIBLE_DEVICES", Value: visible},
		{Name: "NVIDIA_VISIBLE_DEVICES", Value: visible},
	}}, nil
}

func (g *gpuManager) give(holder gpuHolder, n int) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if had := g.given[holder]; len(had) == n {
		return had, nil
	}
	taken := g.taken(holder)
	var free []string
	for _, gpu := range g.gpus {
		if !taken[gpu] {
			free = append(free, gpu)
		}
	}
	if len(free) < n {
		return nil, fmt.Errorf("wants %d GPUs, %d of %d are free", n, len(free), len(g.gpus))
	}
	g.given[holder] = free[:n]
	return free[:n], nil
}

// taken forgets the holders that are gone and lists the GPUs that the others hold. The asking pod counts as there: kubelet
// may not list it among the active ones yet. Its init containers have ended, or the asking one is the next of them.
func (g *gpuManager) taken(asking gpuHolder) map[string]bool {
	alive := map[types.UID]bool{asking.pod: true}
	if g.active != nil {
		for _, pod := range g.active() {
			alive[pod.UID] = true
		}
	}
	taken := map[string]bool{}
	for holder, gpus := range g.given {
		if !alive[holder.pod] {
			delete(g.given, holder)
			continue
		}
		if holder.init && holder.pod == asking.pod {
			continue
		}
		for _, gpu := range gpus {
			taken[gpu] = true
		}
	}
	return taken
}

// NewPodContainerManager manages no cgroups of pods: the runtime makes one for each container.
func (g *gpuManager) NewPodContainerManager() cm.PodContainerManager {
	return noPodCgroups{g.ContainerManager.NewPodContainerManager()}
}

type noPodCgroups struct{ cm.PodContainerManager }

func (noPodCgroups) GetPodCgroupConfig(*corev1.Pod, corev1.ResourceName) (*cm.ResourceConfig, error) {
	return nil, nil //nolint:nilnil // kubelet reads nil as "none"
}
