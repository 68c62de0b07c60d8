package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	cri "k8s.io/cri-api/pkg/apis"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// refusingRuntime is a container runtime that can be made to refuse all that kubelet asks, as one that has crashed does. What
// runs goes on. Kubelet then reports the node as not ready.
type refusingRuntime struct {
	cri.RuntimeService
	refuse atomic.Bool
}

var errRefused = errors.New("the container runtime is broken (trainyard node break)")

// unless calls f unless the runtime refuses.
func unless[T any](r *refusingRuntime, f func() (T, error)) (T, error) {
	if r.refuse.Load() {
		var none T
		return none, errRefused
	}
	return f()
}

func (r *refusingRuntime) err(f func() error) error {
	if r.refuse.Load() {
		return errRefused
	}
	return f()
}

func (r *refusingRuntime) Status(ctx context.Context, verbose bool) (*v1.StatusResponse, error) {
	return unless(r, func() (*v1.StatusResponse, error) { return r.RuntimeService.Status(ctx, verbose) })
}

func (r *refusingRuntime) RunPodSandbox(ctx context.Context, config *v1.PodSandboxConfig, handler string) (string, error) {
	return unless(r, func() (string, error) { return r.RuntimeService.RunPodSandbox(ctx, config, handler) })
}

func (r *refusingRuntime) StopPodSandbox(ctx context.Context, id string) error {
	return r.err(func() error { return r.RuntimeService.StopPodSandbox(ctx, id) })
}

func (r *refusingRuntime) RemovePodSandbox(ctx context.Context, id string) error {
	return r.err(func() error { return r.RuntimeService.RemovePodSandbox(ctx, id) })
}

func (r *refusingRuntime) ListPodSandbox(ctx context.Context, filter *v1.PodSandboxFilter) ([]*v1.PodSandbox, error) {
	return unless(r, func() ([]*v1.PodSandbox, error) { return r.RuntimeService.ListPodSandbox(ctx, filter) })
}

func (r *refusingRuntime) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*v1.PodSandboxStatusResponse, error) {
	return unless(r, func() (*v1.PodSandboxStatusResponse, error) {
		return r.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	})
}

func (r *refusingRuntime) CreateContainer(ctx context.Context, sandbox string, config *v1.ContainerConfig, pod *v1.PodSandboxConfig) (string, error) {
	return unless(r, func() (string, error) { return r.RuntimeService.CreateContainer(ctx, sandbox, config, pod) })
}

func (r *refusingRuntime) StartContainer(ctx context.Context, id string) error {
	return r.err(func() error { return r.RuntimeService.StartContainer(ctx, id) })
}

func (r *refusingRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	return r.err(func() error { return r.RuntimeService.StopContainer(ctx, id, timeout) })
}

func (r *refusingRuntime) RemoveContainer(ctx context.Context, id string) error {
	return r.err(func() error { return r.RuntimeService.RemoveContainer(ctx, id) })
}

func (r *refusingRuntime) ListContainers(ctx context.Context, filter *v1.ContainerFilter) ([]*v1.Container, error) {
	return unless(r, func() ([]*v1.Container, error) { return r.RuntimeService.ListContainers(ctx, filter) })
}

func (r *refusingRuntime) ContainerStatus(ctx context.Context, id string, verbose bool) (*v1.ContainerStatusResponse, error) {
	return unless(r, func() (*v1.ContainerStatusResponse, error) { return r.RuntimeService.ContainerStatus(ctx, id, verbose) })
}

func (r *refusingRuntime) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	if r.refuse.Load() {
		return nil, nil, errRefused
	}
	return r.RuntimeService.ExecSync(ctx, id, cmd, timeout)
}

func (r *refusingRuntime) Exec(ctx context.Context, request *v1.ExecRequest) (*v1.ExecResponse, error) {
	return unless(r, func() (*v1.ExecResponse, error) { return r.RuntimeService.Exec(ctx, request) })
}
