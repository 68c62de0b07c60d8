package procrun

import (
	"context"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *sandbox) state() v1.PodSandboxState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return v1.PodSandboxState_SANDBOX_READY
	}
	return v1.PodSandboxState_SANDBOX_NOTREADY
}

func (s *sandbox) status() *v1.PodSandboxStatus {
	status := &v1.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created,
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.handler,
		Network: &v1.PodSandboxNetworkStatus{},
		Linux:   &v1.LinuxPodSandboxStatus{Namespaces: &v1.Namespace{Options: s.options()}},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ip.IsValid() {
		status.Network.Ip = s.ip.String()
	}
	return status
}

// PodSandboxStatus reports a sandbox together with its containers.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*v1.PodSandboxStatusResponse, error) {
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	return &v1.PodSandboxStatusResponse{
		Status: s.status(), ContainersStatuses: r.statusesOf(id), Timestamp: time.Now().UnixNano(),
	}, nil
}

// ListPodSandbox lists the sandboxes that match the filter.
func (r *Runtime) ListPodSandbox(_ context.Context, filter *v1.PodSandboxFilter) ([]*v1.PodSandbox, error) {
	var list []*v1.PodSandbox
	for _, s := range r.allSandboxes() {
		state := s.state()
		if filter.GetId() != "" && filter.GetId() != s.id ||
			filter.GetState() != nil && filter.GetState().GetState() != state ||
			!hasLabels(s.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &v1.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: state, CreatedAt: s.created,
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.handler,
		})
	}
	return list, nil
}

// UpdatePodSandboxResources has nothing to do: limits are those of the containers.
func (r *Runtime) UpdatePodSandboxResources(context.Context, *v1.UpdatePodSandboxResourcesRequest) (*v1.UpdatePodSandboxResourcesResponse, error) {
	return &v1.UpdatePodSandboxResourcesResponse{}, nil
}
