package procrun

import (
	"context"
	"errors"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (c *container) status() *v1.ContainerStatus {
	state := c.state()
	c.mu.Lock()
	defer c.mu.Unlock()
	image := c.config.GetImage()
	status := &v1.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: state, CreatedAt: c.created, StartedAt: c.started,
		Image: image, ImageRef: imageID(image), ImageId: imageID(image),
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		LogPath: c.logPath, StopSignal: c.config.GetStopSignal(),
		Resources: &v1.ContainerResources{Linux: c.resources},
		User: &v1.ContainerUser{Linux: &v1.LinuxContainerUser{
			Uid: int64(c.spec.User.UID), Gid: int64(c.spec.User.GID), SupplementalGroups: groups(c.spec.User.Groups),
		}},
	}
	if c.ended != nil {
		status.FinishedAt, status.ExitCode = c.ended.At, c.ended.ExitCode
		status.Reason, status.Message = c.ended.Reason, c.ended.Message
	}
	return status
}

func groups(ids []uint32) []int64 {
	var all []int64
	for _, id := range ids {
		all = append(all, int64(id))
	}
	return all
}

func (r *Runtime) statusesOf(sandboxID string) []*v1.ContainerStatus {
	var statuses []*v1.ContainerStatus
	for _, c := range r.containersOf(sandboxID) {
		statuses = append(statuses, c.status())
	}
	return statuses
}

// ContainerStatus reports a container.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*v1.ContainerStatusResponse, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	return &v1.ContainerStatusResponse{Status: c.status()}, nil
}

// ListContainers lists the containers that match the filter.
func (r *Runtime) ListContainers(_ context.Context, filter *v1.ContainerFilter) ([]*v1.Container, error) {
	var list []*v1.Container
	for _, c := range r.allContainers() {
		state := c.state()
		if filter.GetId() != "" && filter.GetId() != c.id ||
			filter.GetPodSandboxId() != "" && filter.GetPodSandboxId() != c.sandboxID ||
			filter.GetState() != nil && filter.GetState().GetState() != state ||
			!hasLabels(c.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		image := c.config.GetImage()
		list = append(list, &v1.Container{
			Id: c.id, PodSandboxId: c.sandboxID, Metadata: c.config.GetMetadata(), State: state, CreatedAt: c.created,
			Image: image, ImageRef: imageID(image), ImageId: imageID(image),
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	return list, nil
}

// CheckpointContainer is not possible: a process of the machine cannot be frozen to disk.
func (r *Runtime) CheckpointContainer(context.Context, *v1.CheckpointContainerRequest) error {
	return errors.New("checkpointing a container: not supported by the local cluster")
}

// CheckpointPod is not possible either.
func (r *Runtime) CheckpointPod(context.Context, *v1.CheckpointPodRequest) error {
	return errors.New("checkpointing a pod: not supported by the local cluster")
}

// RestorePod has nothing to restore from.
func (r *Runtime) RestorePod(context.Context, *v1.RestorePodRequest) (*v1.RestorePodResponse, error) {
	return nil, errors.New("restoring a pod: not supported by the local cluster")
}
