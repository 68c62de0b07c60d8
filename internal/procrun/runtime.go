package procrun

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var _ cri.RuntimeService = (*Runtime)(nil)

// Runtime runs pods as processes. It is kubelet's runtime service; Images is the matching image service.
//
// The maps are guarded by mu, which is held for look-ups only; each sandbox and container guards itself.
type Runtime struct {
	config  Config
	network *network
	streams *streamServer
	limits  *limits
	// terminals says that /dev/pts is mounted by us.
	terminals bool
	// closing says that nothing new may start.
	closing atomic.Bool

	mu         sync.RWMutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

// New starts a runtime that continues with the records it finds under config.Root. What ran when they were written
// is reported as ended.
func New(config Config) (*Runtime, error) {
	r := &Runtime{config: config, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
	for _, dir := range []string{r.dir("sandboxes"), r.dir("containers"), r.dir("pods")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating runtime directory: %w", err)
		}
	}
	r.load()
	r.limits = newLimits(config.Cgroup)
	r.mountTerminals()
	var err error
	if r.network, err = newNetwork(config); err != nil {
		return nil, err
	}
	if r.streams, err = newStreams(r); err != nil {
		return nil, err
	}
	return r, nil
}

// mountTerminals gives the enclave terminals of its own, which a mirror of /dev can offer to every user. Where that is
// refused, the machine's are used.
func (r *Runtime) mountTerminals() {
	err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	r.terminals = err == nil
}

func (r *Runtime) dir(elem ...string) string {
	return filepath.Join(append([]string{r.config.Root}, elem...)...)
}

// Close ends all containers, with SIGTERM and after their grace period with SIGKILL, and stops serving streams. The
// records say how each container ended.
func (r *Runtime) Close(ctx context.Context) error {
	r.closing.Store(true)
	_ = r.streams.http.Close()
	var all sync.WaitGroup
	for _, c := range r.allContainers() {
		all.Go(func() { _ = c.stop(ctx, r.gracePeriod(c)) })
	}
	all.Wait()
	for _, s := range r.allSandboxes() {
		r.stopSandbox(s)
	}
	r.network.close()
	r.limits.close()
	if r.terminals {
		_ = unix.Unmount("/dev/pts", unix.MNT_DETACH)
	}
	return nil
}

// Version answers for the one version of the interface there is.
func (r *Runtime) Version(context.Context, string) (*v1.VersionResponse, error) {
	return &v1.VersionResponse{
		Version: "0.1.0", RuntimeName: "trainyard", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1",
	}, nil
}

// Status reports runtime and network ready: New does not return before they are.
func (r *Runtime) Status(context.Context, bool) (*v1.StatusResponse, error) {
	return &v1.StatusResponse{
		Status: &v1.RuntimeStatus{Conditions: []*v1.RuntimeCondition{
			{Type: v1.RuntimeReady, Status: true},
			{Type: v1.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*v1.RuntimeHandler{
			{Features: &v1.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}},
		},
		Features: &v1.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

// UpdateRuntimeConfig accepts kubelet's pod range and keeps its own, which is the same by configuration.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *v1.RuntimeConfig) error { return nil }

// RuntimeConfig says that control groups are handled as files, without systemd.
func (r *Runtime) RuntimeConfig(context.Context) (*v1.RuntimeConfigResponse, error) {
	return &v1.RuntimeConfigResponse{
		Linux: &v1.LinuxRuntimeConfiguration{CgroupDriver: v1.CgroupDriver_CGROUPFS},
	}, nil
}

// GetContainerEvents is not implemented: only kubelet's feature EventedPLEG calls it, which is off by default.
func (r *Runtime) GetContainerEvents(context.Context, chan *v1.ContainerEventResponse, func(v1.RuntimeService_GetContainerEventsClient)) error {
	return status.Error(codes.Unimplemented, "the runtime sends no container events")
}

var errClosing = errors.New("the local cluster is stopping")

func (r *Runtime) sandbox(id string) (*sandbox, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s := r.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "pod sandbox %q not found", id)
}

func (r *Runtime) container(id string) (*container, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %q not found", id)
}

func (r *Runtime) allSandboxes() []*sandbox {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*sandbox, 0, len(r.sandboxes))
	for _, s := range r.sandboxes {
		all = append(all, s)
	}
	return all
}

func (r *Runtime) allContainers() []*container {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*container, 0, len(r.containers))
	for _, c := range r.containers {
		all = append(all, c)
	}
	return all
}

func (r *Runtime) containersOf(sandboxID string) []*container {
	var of []*container
	for _, c := range r.allContainers() {
		if c.sandboxID == sandboxID {
			of = append(of, c)
		}
	}
	return of
}

func newID() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// hasLabels reports whether labels has all of the selector.
func hasLabels(labels, selector map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
