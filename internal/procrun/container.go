package procrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trainyard/trainyard/internal/procrun/pid1"
)

// container is a command with its supervisor, before, while and after it runs.
type container struct {
	id        string
	sandboxID string
	config    *v1.ContainerConfig
	logPath   string
	created   int64

	starting sync.Mutex // held while the container starts

	mu        sync.Mutex // guards what follows
	started   int64
	ended     *ending
	resources *v1.LinuxContainerResources

	supervisor *supervisor
	mount, pid *os.File // namespaces, for exec
	spec       pid1.Spec
	console    *console
	group      cgroups.Manager          // nil: no limits
	execs      map[*supervisor]struct{} // commands run in the container besides its own
	sampled    sample
	done       chan struct{} // closed when the container has ended and its log is complete
}

// ending is how a container ended.
type ending struct {
	At       int64  `json:"at"`
	ExitCode int32  `json:"exitCode"`
	Reason   string `json:"reason"`
	Message  string `json:"message,omitempty"`
}

func (c *container) name() string { return c.config.GetMetadata().GetName() }

func (c *container) state() v1.ContainerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return v1.ContainerState_CONTAINER_EXITED
	case c.started != 0:
		return v1.ContainerState_CONTAINER_RUNNING
	}
	return v1.ContainerState_CONTAINER_CREATED
}

// CreateContainer checks and records a container; nothing runs yet.
func (r *Runtime) CreateContainer(_ context.Context, sandboxID string, config *v1.ContainerConfig, pod *v1.PodSandboxConfig) (string, error) {
	if r.closing.Load() {
		return "", errClosing
	}
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return "", err
	}
	c := &container{
		id: newID(), sandboxID: sandboxID, config: config, created: time.Now().UnixNano(), done: make(chan struct{}),
		execs: map[*supervisor]struct{}{}, resources: config.GetLinux().GetResources(),
	}
	if config.GetLogPath() != "" {
		c.logPath = filepath.Join(pod.GetLogDirectory(), config.GetLogPath())
	}
	if c.spec, err = r.specify(s, c); err != nil {
		return "", fmt.Errorf("creating container %q of pod %s: %w", c.name(), s.name(), err)
	}
	r.mu.Lock()
	r.containers[c.id] = c
	r.mu.Unlock()
	r.saveContainer(c)
	return c.id, nil
}

// StartContainer starts the command. A command that cannot be started leaves the container exited with the reason. One that is not
// started because the runtime stops has no end: kubelet would count it as another failure.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	s, err := r.sandbox(c.sandboxID)
	if err != nil {
		return err
	}
	c.starting.Lock()
	defer c.starting.Unlock()
	if state := c.state(); state != v1.ContainerState_CONTAINER_CREATED {
		return fmt.Errorf("starting container %q of pod %s: it is %s", c.name(), s.name(), state)
	}
	if err := r.start(s, c); errors.Is(err, errClosing) {
		return err
	} else if err != nil {
		code := 128
		var failure *pid1.Failure
		if errors.As(err, &failure) {
			code = failure.ExitCode
		}
		r.end(c, ending{ExitCode: int32(code), Reason: "StartError", Message: err.Error()})
		return fmt.Errorf("starting container %q of pod %s: %w", c.name(), s.name(), err)
	}
	r.saveContainer(c)
	go r.watch(c)
	return nil
}

func (r *Runtime) start(s *sandbox, c *container) error {
	if r.closing.Load() {
		return errClosing
	}
	namespaces, err := r.namespacesOf(s, c)
	if err != nil {
		return err
	}
	defer closeAll(namespaces)
	console, err := openConsole(c, r.config.LogLimit)
	if err != nil {
		return err
	}
	group, err := r.limits.group(c.id, c.resources)
	if err != nil {
		console.closeTheirs()
		console.close()
		return err
	}
	l := launching{
		spec: c.spec, namespaces: namespaces, flags: unix.CLONE_NEWNS, streams: console.theirs, place: placeIn(group),
	}
	if c.pidMode(s) == v1.NamespaceMode_CONTAINER {
		l.flags |= unix.CLONE_NEWPID
	}
	supervisor, err := launch(l)
	console.closeTheirs()
	if err != nil {
		console.close()
		remove(group)
		return err
	}
	console.begin()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.supervisor, c.console, c.group, c.started = supervisor, console, group, time.Now().UnixNano()
	// Where this fails the container has ended already, and nothing can be run in it.
	c.mount, _ = os.Open(fmt.Sprintf("/proc/%d/ns/mnt", supervisor.process.Pid))
	c.pid, _ = os.Open(fmt.Sprintf("/proc/%d/ns/pid", supervisor.process.Pid))
	return nil
}

// pidMode says whose processes the container sees: as its pod says, but for a container that looks into another.
func (c *container) pidMode(s *sandbox) v1.NamespaceMode {
	if mode := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid(); mode == v1.NamespaceMode_TARGET {
		return mode
	}
	return s.options().GetPid()
}

// namespacesOf returns the namespaces the container runs in, to enter and then to close.
func (r *Runtime) namespacesOf(s *sandbox, c *container) ([]*os.File, error) {
	namespaces, err := s.namespaces()
	if err != nil || c.pidMode(s) != v1.NamespaceMode_TARGET {
		return namespaces, err
	}
	target, err := r.container(c.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetTargetId())
	if err != nil {
		closeAll(namespaces)
		return nil, err
	}
	target.mu.Lock()
	defer target.mu.Unlock()
	if target.pid == nil {
		closeAll(namespaces)
		return nil, fmt.Errorf("looking into container %q: %w", target.name(), errNotRunning)
	}
	its, err := duplicate(target.pid)
	return append(namespaces, its...), err
}

// watch waits for the container's end.
func (r *Runtime) watch(c *container) {
	code, err := c.supervisor.wait()
	c.console.end()
	end := ending{ExitCode: int32(code), Reason: "Completed"}
	if code != 0 {
		end.Reason = "Error"
	}
	if code != 0 && outOfMemory(c.group) {
		end.Reason = "OOMKilled"
	}
	if err != nil {
		end = ending{ExitCode: 255, Reason: "Unknown", Message: err.Error()}
	}
	if r.closing.Load() {
		end = stoppedWithRuntime(end.ExitCode)
	}
	r.end(c, end)
}

// end records the container's end and wakes those who wait for it.
func (r *Runtime) end(c *container, end ending) {
	end.At = time.Now().UnixNano()
	c.mu.Lock()
	c.ended = &end
	if c.started == 0 {
		c.started = end.At // else it would seem to have started in 1970
	}
	closeAll([]*os.File{c.mount, c.pid})
	c.mount, c.pid = nil, nil
	group := c.group
	c.group = nil
	c.mu.Unlock()
	remove(group)
	r.saveContainer(c)
	close(c.done)
}

// StopContainer asks the command to end and kills it with all its children when timeout seconds have passed.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.container(id)
	if err != nil {
		return nil // stopping what is gone is no error
	}
	if err := c.stop(ctx, time.Duration(timeout)*time.Second); err != nil {
		return fmt.Errorf("stopping container %q: %w", c.name(), err)
	}
	return nil
}

func (c *container) stop(ctx context.Context, grace time.Duration) error {
	c.starting.Lock() // a start that is under way comes to its end first
	state := c.state()
	c.starting.Unlock()
	if state != v1.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	if grace > 0 {
		c.supervisor.signal(stopSignal(c.config.GetStopSignal()))
		kill := time.NewTimer(grace)
		defer kill.Stop()
		select {
		case <-c.done:
			return nil
		case <-kill.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.supervisor.kill()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ShortenGracePeriod kills what still runs of a pod when grace has passed, whatever grace period it was stopped with.
func (r *Runtime) ShortenGracePeriod(pod string, grace time.Duration) {
	for _, c := range r.allContainers() {
		if s, err := r.sandbox(c.sandboxID); err != nil || s.config.GetMetadata().GetUid() != pod {
			continue
		}
		time.AfterFunc(grace, func() { _ = c.stop(context.Background(), 0) })
	}
}

// stopSignal is the signal of that name, and SIGTERM for the runtime's own choice.
func stopSignal(s v1.Signal) syscall.Signal {
	if n := unix.SignalNum(strings.TrimPrefix(s.String(), "SIGNAL_")); n != 0 {
		return n
	}
	return syscall.SIGTERM
}

// RemoveContainer removes a container and its record, killing it if it still runs.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	if _, err := r.container(id); err != nil {
		return nil
	}
	if err := r.StopContainer(ctx, id, 0); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.containers, id)
	r.mu.Unlock()
	_ = os.Remove(r.containerRecord(id))
	return nil
}
