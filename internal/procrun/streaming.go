package procrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// streamer connects what kubelet's streaming server receives with containers.
type streamer struct{ runtime *Runtime }

var _ streaming.Runtime = streamer{}

// streamServer serves exec, attach and port-forward on a free port of the enclave's loopback interface. Each URL holds a
// token that is good for one connection.
type streamServer struct {
	streaming.Server
	http *http.Server
}

func newStreams(r *Runtime) (*streamServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for streams: %w", err)
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr}
	server, err := streaming.NewServer(config, streamer{r})
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("creating the streaming server: %w", err)
	}
	s := &streamServer{Server: server, http: &http.Server{Handler: server, ReadHeaderTimeout: 30 * time.Second}}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// Exec runs a command in a container and streams to and from it.
func (s streamer) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, err io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	return s.runtime.exec(ctx, id, cmd, execution{
		stdin: in, stdout: out, stderr: err, tty: tty,
		opened: func(streams *streams) {
			if tty {
				followFirst(streams, resize)
			}
			go follow(streams, resize)
		},
	})
}

// followFirst sets the size that the client's terminal has at the start, so that the command finds it. A client that sends no size
// is not waited for long.
func followFirst(streams *streams, resize <-chan remotecommand.TerminalSize) {
	select {
	case size, open := <-resize:
		if open {
			streams.resize(size.Width, size.Height)
		}
	case <-time.After(200 * time.Millisecond):
	}
}

// follow resizes the terminal as the client's is resized.
func follow(streams *streams, resize <-chan remotecommand.TerminalSize) {
	for size := range resize {
		streams.resize(size.Width, size.Height)
	}
}

// Attach streams to and from the container's own command until it ends or the client goes.
func (s streamer) Attach(ctx context.Context, id string, in io.Reader, out, err io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	c, failed := s.runtime.container(id)
	if failed != nil {
		return failed
	}
	c.mu.Lock()
	console, ended := c.console, c.ended != nil
	c.mu.Unlock()
	if console == nil || ended {
		return fmt.Errorf("attaching to container %q: %w", c.name(), errNotRunning)
	}
	go follow(console.streams, resize)
	if in != nil && console.stdin != nil {
		go func() {
			_, _ = io.Copy(console.stdin, in)
			if c.config.GetStdinOnce() {
				console.closeInput()
			}
		}()
	}
	w := console.watch(out, err)
	defer console.unwatch(w)
	w.run(ctx, c.done)
	return nil
}

// PortForward connects a stream with a port of the pod's loopback interface.
func (s streamer) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	defer func() { _ = stream.Close() }()
	sandbox, err := s.runtime.sandbox(id)
	if err != nil {
		return err
	}
	namespaces, err := sandbox.namespaces()
	if err != nil {
		return fmt.Errorf("forwarding port %d of pod %s: %w", port, sandbox.name(), err)
	}
	defer closeAll(namespaces)
	var conn net.Conn
	err = onOwnThread(func() error {
		if err := enter(namespaces[0]); err != nil {
			return err
		}
		conn, err = dialLoopback(ctx, port)
		return err
	})
	if err != nil {
		return fmt.Errorf("forwarding port %d of pod %s: %w", port, sandbox.name(), err)
	}
	defer func() { _ = conn.Close() }()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}

// dialLoopback dials from the calling thread's network namespace.
func dialLoopback(ctx context.Context, port int32) (net.Conn, error) {
	var dialer net.Dialer
	p := strconv.Itoa(int(port))
	conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", p))
	if err == nil {
		return conn, nil
	}
	conn, err6 := dialer.DialContext(ctx, "tcp6", net.JoinHostPort("::1", p))
	if err6 != nil {
		return nil, errors.Join(err, err6)
	}
	return conn, nil
}

// Attach returns where to connect to stream to and from a container.
func (r *Runtime) Attach(_ context.Context, request *v1.AttachRequest) (*v1.AttachResponse, error) {
	if err := r.running(request.GetContainerId()); err != nil {
		return nil, fmt.Errorf("attaching: %w", err)
	}
	return r.streams.GetAttach(request)
}

// PortForward returns where to connect to reach a port of a pod.
func (r *Runtime) PortForward(_ context.Context, request *v1.PortForwardRequest) (*v1.PortForwardResponse, error) {
	if _, err := r.sandbox(request.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return r.streams.GetPortForward(request)
}
