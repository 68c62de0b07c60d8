package procrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"
)

// maxSyncOutput is as much of each stream as ExecSync keeps.
const maxSyncOutput = 16 << 20

// ExecSync runs a command in a container and returns its output. The errors are those that kubelet's own client of a
// remote runtime returns: probes and hooks recognise an exit code and a time-out by them.
func (r *Runtime) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, []byte, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimedOut)
		defer cancel()
	}
	var stdout, stderr cappedBuffer
	err := r.exec(ctx, id, cmd, execution{stdout: &stdout, stderr: &stderr})
	if err == nil {
		return stdout.data, stderr.data, nil
	}
	if errors.Is(context.Cause(ctx), errTimedOut) {
		return nil, nil, fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(cmd, " "), timeout)
	}
	return stdout.data, stderr.data, err
}

var (
	errTimedOut   = errors.New("timed out")
	errNotRunning = errors.New("it is not running")
)

// cappedBuffer keeps the beginning of what is written to it.
type cappedBuffer struct{ data []byte }

func (b *cappedBuffer) Write(p []byte) (int, error) {
	room := max(0, maxSyncOutput-len(b.data))
	b.data = append(b.data, p[:min(room, len(p))]...)
	return len(p), nil
}

// execution is what connects a command in a container with its caller.
type execution struct {
	stdin          io.Reader // nil: none
	stdout, stderr io.Writer
	tty            bool
	opened         func(*streams) // called before the command starts
}

// exec runs a command in a running container to its end. It ends early, with everything it started, when ctx does.
func (r *Runtime) exec(ctx context.Context, id string, cmd []string, e execution) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	streams, err := openStreams(e.stdin != nil, e.tty, c.spec.User)
	if err != nil {
		return err
	}
	if e.opened != nil {
		e.opened(streams)
	}
	supervisor, err := r.launchIn(c, cmd, streams, e.tty)
	streams.closeTheirs()
	defer streams.close()
	if err != nil {
		return fmt.Errorf("running %q in container %q: %w", strings.Join(cmd, " "), c.name(), err)
	}
	defer c.track(supervisor)()
	stop := context.AfterFunc(ctx, supervisor.kill)
	defer stop()
	if e.stdin != nil {
		go func() {
			_, _ = io.Copy(streams.stdin, e.stdin)
			streams.closeInput()
		}()
	}
	pumps := []*pump{startPump(streams.stdout, writeTo(e.stdout))}
	if streams.stderr != nil {
		pumps = append(pumps, startPump(streams.stderr, writeTo(e.stderr)))
	}
	code, err := supervisor.wait()
	var finished sync.WaitGroup
	for _, p := range pumps {
		finished.Go(p.finish)
	}
	finished.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case code != 0:
		text := fmt.Errorf("command '%s' exited with %d", strings.Join(cmd, " "), code)
		return utilexec.CodeExitError{Err: text, Code: code}
	}
	return nil
}

// track counts a command as part of the container until the returned function is called.
func (c *container) track(s *supervisor) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.execs[s] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.execs, s)
	}
}

// writeTo writes to a client that may have gone, or never wanted this stream.
func writeTo(w io.Writer) func([]byte) {
	return func(data []byte) {
		if w != nil {
			_, _ = w.Write(data)
		}
	}
}

// launchIn starts a command in the namespaces of a running container, as the container's own user.
func (r *Runtime) launchIn(c *container, cmd []string, streams *streams, tty bool) (*supervisor, error) {
	s, err := r.sandbox(c.sandboxID)
	if err != nil {
		return nil, err
	}
	spec := c.spec
	spec.Args, spec.TTY, spec.View, spec.KillOrphans = cmd, tty, nil, false
	namespaces, err := s.namespaces()
	if err != nil {
		return nil, err
	}
	defer closeAll(namespaces)
	c.mu.Lock()
	if c.ended != nil || c.mount == nil || c.pid == nil {
		c.mu.Unlock()
		return nil, errNotRunning
	}
	own, err := duplicate(c.mount, c.pid)
	group := c.group
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer closeAll(own)
	return launch(launching{
		spec: spec, namespaces: append(namespaces[:3:3], own[1]), mount: own[0], streams: streams.theirs,
		place: placeIn(group),
	})
}

// Exec returns where to connect to run a command with streams.
func (r *Runtime) Exec(_ context.Context, request *v1.ExecRequest) (*v1.ExecResponse, error) {
	if err := r.running(request.GetContainerId()); err != nil {
		return nil, fmt.Errorf("running a command: %w", err)
	}
	return r.streams.GetExec(request)
}

// running returns an error unless the container runs.
func (r *Runtime) running(id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	if c.state() != v1.ContainerState_CONTAINER_RUNNING {
		return fmt.Errorf("container %q: %w", c.name(), errNotRunning)
	}
	return nil
}
