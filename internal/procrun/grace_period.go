package procrun

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// gracePeriodAnnotation is where kubelet writes a pod's terminationGracePeriodSeconds, on each of its containers.
const gracePeriodAnnotation = "io.kubernetes.pod.terminationGracePeriod"

// defaultGracePeriod is Kubernetes' own.
const defaultGracePeriod = 30 * time.Second

// gracePeriod is how long a container has between SIGTERM and SIGKILL when the runtime closes.
func (r *Runtime) gracePeriod(c *container) time.Duration {
	period := defaultGracePeriod
	if seconds, err := strconv.ParseInt(c.config.GetAnnotations()[gracePeriodAnnotation], 10, 64); err == nil {
		period = time.Duration(min(seconds, int64(maxGracePeriod.Seconds()))) * time.Second
	}
	if r.config.GraceLimit > 0 {
		period = min(period, r.config.GraceLimit)
	}
	return period
}

// maxGracePeriod keeps a period within what a time.Duration holds.
const maxGracePeriod = 100 * 365 * 24 * time.Hour

// RunningPod is a pod with containers that run.
type RunningPod struct {
	Name        string        // namespace/name
	GracePeriod time.Duration // the longest of its containers
}

// RunningPods lists the pods that have running containers, by name.
func (r *Runtime) RunningPods() []RunningPod {
	pods := map[string]RunningPod{}
	for _, c := range r.allContainers() {
		if c.state() != v1.ContainerState_CONTAINER_RUNNING {
			continue
		}
		if s, err := r.sandbox(c.sandboxID); err == nil {
			pods[s.name()] = RunningPod{s.name(), max(pods[s.name()].GracePeriod, r.gracePeriod(c))}
		}
	}
	return slices.SortedFunc(maps.Values(pods), func(a, b RunningPod) int { return cmp.Compare(a.Name, b.Name) })
}
