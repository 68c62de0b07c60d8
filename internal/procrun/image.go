package procrun

import (
	"context"
	"time"

	cri "k8s.io/cri-api/pkg/apis"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// images answers kubelet's questions about images, none of which exists: the machine is the image, so every image
// is there already, whatever its name.
type images struct{ runtime *Runtime }

var _ cri.ImageManagerService = images{}

// Images is the image service that belongs to the runtime.
func (r *Runtime) Images() cri.ImageManagerService { return images{r} }

func imageID(spec *v1.ImageSpec) string { return spec.GetImage() }

func (i images) image(spec *v1.ImageSpec) *v1.Image {
	uid := int64(0)
	if me := i.runtime.config.User; me != nil {
		uid = int64(me.UID)
	}
	return &v1.Image{
		Id: imageID(spec), RepoTags: []string{spec.GetImage()}, Size: 1, Spec: spec, Pinned: true,
		Uid: &v1.Int64Value{Value: uid},
	}
}

// ListImages lists nothing but the image asked for.
func (i images) ListImages(_ context.Context, filter *v1.ImageFilter) ([]*v1.Image, error) {
	if filter.GetImage().GetImage() == "" {
		return nil, nil
	}
	return []*v1.Image{i.image(filter.GetImage())}, nil
}

// ImageStatus says that the image is there.
func (i images) ImageStatus(_ context.Context, spec *v1.ImageSpec, _ bool) (*v1.ImageStatusResponse, error) {
	return &v1.ImageStatusResponse{Image: i.image(spec)}, nil
}

// PullImage succeeds at once.
func (i images) PullImage(_ context.Context, spec *v1.ImageSpec, _ *v1.AuthConfig, _ *v1.PodSandboxConfig) (string, error) {
	return imageID(spec), nil
}

// RemoveImage has nothing to remove.
func (i images) RemoveImage(context.Context, *v1.ImageSpec) error { return nil }

// ImageFsInfo names the file system that holds the runtime's state, of which images take nothing.
func (i images) ImageFsInfo(context.Context) (*v1.ImageFsInfoResponse, error) {
	usage := &v1.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &v1.FilesystemIdentifier{Mountpoint: i.runtime.config.Root},
		UsedBytes: &v1.UInt64Value{}, InodesUsed: &v1.UInt64Value{},
	}
	return &v1.ImageFsInfoResponse{
		ImageFilesystems: []*v1.FilesystemUsage{usage}, ContainerFilesystems: []*v1.FilesystemUsage{usage},
	}, nil
}

// Close has nothing to close.
func (i images) Close(context.Context) error { return nil }
