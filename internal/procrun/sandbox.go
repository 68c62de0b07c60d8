package procrun

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trainyard/trainyard/internal/procrun/pid1"
)

// sandbox is a pod's share of the machine. It has no process: its namespaces live as long as they are held open. Only
// where the containers share a PID namespace is there a process, which holds that one.
type sandbox struct {
	id      string
	config  *v1.PodSandboxConfig
	handler string
	created int64

	mu    sync.Mutex
	ready bool
	ip    netip.Addr

	net, uts, ipc *os.File // nil: the enclave's
	pid           *os.File // nil: every container has its own
	init          *supervisor
}

func (s *sandbox) options() *v1.NamespaceOption {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

func (s *sandbox) hostNetwork() bool { return s.options().GetNetwork() == v1.NamespaceMode_NODE }
func (s *sandbox) hostIPC() bool     { return s.options().GetIpc() == v1.NamespaceMode_NODE }
func (s *sandbox) sharedPID() bool   { return s.options().GetPid() == v1.NamespaceMode_POD }

func (s *sandbox) name() string {
	return s.config.GetMetadata().GetNamespace() + "/" + s.config.GetMetadata().GetName()
}

// namespaces returns the pod's namespaces, to enter and then to close.
func (s *sandbox) namespaces() ([]*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		return nil, errors.New("the sandbox is not ready")
	}
	return duplicate(s.net, s.uts, s.ipc, s.pid)
}

// RunPodSandbox creates a pod's namespaces and joins it to the pod network.
func (r *Runtime) RunPodSandbox(_ context.Context, config *v1.PodSandboxConfig, handler string) (string, error) {
	s := &sandbox{id: newID(), config: config, handler: handler, created: time.Now().UnixNano()}
	if err := r.createSandbox(s); err != nil {
		r.stopSandbox(s)
		_ = os.RemoveAll(r.dir("pods", s.id))
		return "", fmt.Errorf("creating sandbox of pod %s: %w", s.name(), err)
	}
	s.ready = true
	r.mu.Lock()
	r.sandboxes[s.id] = s
	r.mu.Unlock()
	r.saveSandbox(s)
	return s.id, nil
}

func (r *Runtime) createSandbox(s *sandbox) error {
	if r.closing.Load() {
		return errClosing
	}
	if err := r.writeSandboxFiles(s); err != nil {
		return err
	}
	if !s.hostNetwork() {
		var err error
		if s.ip, err = r.network.allocate(); err != nil {
			return err
		}
	}
	if err := onOwnThread(func() error { return r.unshare(s) }); err != nil {
		return err
	}
	if s.sharedPID() {
		return r.startSandboxInit(s)
	}
	return nil
}

// unshare moves the calling thread into new namespaces for the pod, and keeps those open.
func (r *Runtime) unshare(s *sandbox) error {
	flags := 0
	if !s.hostNetwork() {
		flags |= unix.CLONE_NEWNET | unix.CLONE_NEWUTS
	}
	if !s.hostIPC() {
		flags |= unix.CLONE_NEWIPC
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("creating namespaces: %w", err)
	}
	var err error
	if !s.hostIPC() {
		if s.ipc, err = openNamespace("ipc"); err != nil {
			return err
		}
	}
	if !s.hostNetwork() {
		if s.uts, err = openNamespace("uts"); err != nil {
			return err
		}
		if s.net, err = openNamespace("net"); err != nil {
			return err
		}
		if err := unix.Sethostname([]byte(s.config.GetHostname())); err != nil {
			return fmt.Errorf("setting host name %q: %w", s.config.GetHostname(), err)
		}
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("starting loopback interface: %w", err)
		}
		if err := r.network.join(s.net, s.id, s.ip); err != nil {
			return err
		}
		// Ports below 1024 are for everybody: the pod has the network for itself.
		_ = os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
	}
	return setSysctls(s.config.GetLinux().GetSysctls())
}

// setSysctls sets kernel parameters of the calling thread's namespaces.
func setSysctls(sysctls map[string]string) error {
	for name, value := range sysctls {
		path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			return fmt.Errorf("setting sysctl %s: %w", name, err)
		}
	}
	return nil
}

// writeSandboxFiles prepares the files of the machine that are the pod's own: resolv.conf, hostname and shared memory.
func (r *Runtime) writeSandboxFiles(s *sandbox) error {
	dir := r.dir("pods", s.id)
	if err := os.MkdirAll(filepath.Join(dir, "shm"), 0o755); err != nil {
		return err
	}
	if dns := s.config.GetDnsConfig(); dns != nil {
		if err := os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte(resolvConf(dns)), 0o644); err != nil {
			return err
		}
	}
	if !s.hostNetwork() {
		hostname := []byte(s.config.GetHostname() + "\n")
		if err := os.WriteFile(filepath.Join(dir, "hostname"), hostname, 0o644); err != nil {
			return err
		}
	}
	if s.hostIPC() {
		return nil
	}
	if err := unix.Mount("shm", filepath.Join(dir, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return fmt.Errorf("creating shared memory: %w", err)
	}
	return nil
}

func resolvConf(dns *v1.DNSConfig) string {
	var b strings.Builder
	if len(dns.GetSearches()) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(dns.GetSearches(), " "))
	}
	for _, server := range dns.GetServers() {
		fmt.Fprintf(&b, "nameserver %s\n", server)
	}
	if len(dns.GetOptions()) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(dns.GetOptions(), " "))
	}
	return b.String()
}

// startSandboxInit starts the process that holds the PID namespace the pod's containers share.
func (r *Runtime) startSandboxInit(s *sandbox) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	s.init, err = launch(launching{
		spec:       pid1.Spec{View: &pid1.View{Proc: true}},
		namespaces: []*os.File{s.net, s.uts, s.ipc},
		flags:      unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		streams:    [3]*os.File{null, null, null},
	})
	if err != nil {
		return fmt.Errorf("starting the shared PID namespace: %w", err)
	}
	s.pid, err = os.Open(fmt.Sprintf("/proc/%d/ns/pid", s.init.process.Pid))
	return err
}

// StopPodSandbox kills what still runs in the pod and gives its network back.
func (r *Runtime) StopPodSandbox(ctx context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil // stopping what is gone is no error
	}
	for _, c := range r.containersOf(id) {
		if err := r.StopContainer(ctx, c.id, 0); err != nil {
			return err
		}
	}
	r.stopSandbox(s)
	return nil
}

// stopSandbox releases all that the sandbox holds.
func (r *Runtime) stopSandbox(s *sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = false
	if s.init != nil {
		s.init.kill()
		_, _ = s.init.wait()
		s.init = nil
	}
	for _, ns := range []**os.File{&s.net, &s.uts, &s.ipc, &s.pid} {
		if *ns != nil {
			_ = (*ns).Close()
			*ns = nil
		}
	}
	if s.ip.IsValid() {
		r.network.release(s.ip)
		s.ip = netip.Addr{}
	}
	_ = unix.Unmount(r.dir("pods", s.id, "shm"), unix.MNT_DETACH)
}

// RemovePodSandbox removes the pod with its containers and records.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil
	}
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	for _, c := range r.containersOf(id) {
		if err := r.RemoveContainer(ctx, c.id); err != nil {
			return err
		}
	}
	r.mu.Lock()
	delete(r.sandboxes, id)
	r.mu.Unlock()
	_ = os.Remove(r.sandboxRecord(id))
	if err := os.RemoveAll(r.dir("pods", id)); err != nil {
		return fmt.Errorf("removing sandbox of pod %s: %w", s.name(), err)
	}
	return nil
}
