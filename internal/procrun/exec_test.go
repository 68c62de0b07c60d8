package procrun

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	clientexec "k8s.io/client-go/util/exec"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"
)

func TestExecSync(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("exec", func(c *v1.PodSandboxConfig) { c.DnsConfig = &v1.DNSConfig{Servers: []string{"1.2.3.4"}} })
	id := w.start(pod, "echo $$ > /dev/shm/main; exec sleep 1000", func(c *v1.ContainerConfig) {
		c.WorkingDir, c.Envs = "/usr", []*v1.KeyValue{{Key: "FOO", Value: []byte("bar")}}
		c.Mounts = []*v1.Mount{{HostPath: w.dir, ContainerPath: "/volume-of-test"}}
	})
	for name, tt := range map[string]struct {
		script         string
		stdout, stderr string
		code           int
	}{
		"both streams":                    {"echo out; echo err >&2", "out\n", "err\n", 0},
		"an exit code":                    {"exit 3", "", "", 3},
		"killed by a signal":              {"kill -KILL $$", "", "", 137},
		"the container's directory":       {"pwd", "/usr\n", "", 0},
		"the container's environment":     {"echo $FOO $HOSTNAME", "bar exec\n", "", 0},
		"the container's host name":       {"hostname", "exec\n", "", 0},
		"the container's processes":       {"kill -0 $(cat /dev/shm/main) && cat /proc/$(cat /dev/shm/main)/comm", "sleep\n", "", 0},
		"the container's files":           {"cat /etc/resolv.conf; ls -d /volume-of-test", "nameserver 1.2.3.4\n/volume-of-test\n", "", 0},
		"the container's network":         {"ls /sys/class/net", "eth0\nlo\n", "", 0},
		"it does not wait for background": {"sleep 1000 & echo done", "done\n", "", 0},
		"a megabyte":                      {"head -c 1000000 /dev/zero | tr '\\0' y", strings.Repeat("y", 1000000), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			stdout, stderr, err := w.ExecSync(context.Background(), id, []string{"sh", "-c", tt.script}, 0)
			var exit utilexec.CodeExitError
			if err != nil && !errors.As(err, &exit) || exit.Code != tt.code {
				t.Errorf("got %v, want exit code %d", err, tt.code)
			}
			if string(stdout) != tt.stdout || string(stderr) != tt.stderr {
				t.Errorf("got %.100q and %.100q, want %.100q and %.100q", stdout, stderr, tt.stdout, tt.stderr)
			}
		})
	}
}

func TestExecSyncThatFails(t *testing.T) {
	w := newWorld(t)
	id := w.start(w.pod("failing"), "exec sleep 1000")
	run := func(timeout time.Duration, cmd ...string) error {
		_, _, err := w.ExecSync(context.Background(), id, cmd, timeout)
		return err
	}
	if err := run(0, "no-such-command"); err == nil || !strings.Contains(err.Error(), `"no-such-command": not found in PATH`) {
		t.Errorf("an unknown command: %v", err)
	}
	mark := "31416"
	begun := time.Now()
	err := run(300*time.Millisecond, "sh", "-c", "trap '' TERM; setsid sleep "+mark+" & (sleep "+mark+" &); sleep "+mark)
	if !errors.Is(err, remote.ErrCommandTimedOut) {
		t.Errorf("a command that takes too long: %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the time-out took %s", took)
	}
	w.eventually(func() bool { return running("sleep "+mark) == 0 }, "all of it is gone")
	w.must(w.StopContainer(context.Background(), id, 0))
	if err := run(0, "true"); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("a container that has ended: %v", err)
	}
}

// client connects to a streaming URL as kubelet does for kubectl.
func client(w *world, at string) remotecommand.Executor {
	w.Helper()
	u, err := url.Parse(at)
	w.must(err)
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: u.Host}, http.MethodPost, u)
	w.must(err)
	return executor
}

func TestExecStreams(t *testing.T) {
	w := newWorld(t)
	id := w.start(w.pod("streams"), "exec sleep 1000")
	for name, tt := range map[string]struct {
		script, stdin, want string
		tty                 bool
		code                int
	}{
		"output":                     {script: "echo out", want: "out\n"},
		"errors":                     {script: "echo err >&2", want: "err\n"},
		"input until its end":        {script: "cat; echo end", stdin: "some\ninput", want: "some\ninputend\n"},
		"an exit code":               {script: "exit 42", code: 42},
		"a terminal":                 {script: "[ -t 0 ] && [ -t 1 ] && echo terminal", tty: true, want: "terminal\r\n"},
		"a terminal of its own":      {script: "test -c /dev/tty && echo hello > /dev/tty", tty: true, want: "hello\r\n"},
		"a terminal's size":          {script: "while [ \"$(stty size)\" != '33 77' ]; do sleep 0.02; done; stty size", tty: true, want: "33 77\r\n"},
		"a terminal's exit code":     {script: "exit 7", tty: true, code: 7},
		"background does not matter": {script: "sleep 1000 & echo done", want: "done\n"},
		"nor on a terminal":          {script: "(trap '' HUP; sleep 1000) & echo done", tty: true, want: "done\r\n"},
		"binary":                     {script: "cat", stdin: "\x00\xff\r\n\x04", want: "\x00\xff\r\n\x04"},
		"a megabyte there and back":  {script: "cat", stdin: strings.Repeat("megabyte", 1<<17), want: strings.Repeat("megabyte", 1<<17)},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			answer, err := w.Exec(context.Background(), &v1.ExecRequest{
				ContainerId: id, Cmd: []string{"sh", "-c", tt.script}, Tty: tt.tty,
				Stdin: tt.stdin != "", Stdout: true, Stderr: !tt.tty,
			})
			w.must(err)
			var out safeBuffer
			options := remotecommand.StreamOptions{Stdout: &out, Tty: tt.tty}
			if !tt.tty {
				options.Stderr = &out
			} else {
				options.TerminalSizeQueue = sizes(make(chan remotecommand.TerminalSize, 1)).of(77, 33)
			}
			if tt.stdin != "" {
				options.Stdin = strings.NewReader(tt.stdin)
			}
			ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
			defer cancel()
			err = client(w, answer.GetUrl()).StreamWithContext(ctx, options)
			var exit clientexec.CodeExitError
			if err != nil && !errors.As(err, &exit) || exit.Code != tt.code {
				t.Errorf("got %v, want exit code %d", err, tt.code)
			}
			if out.String() != tt.want {
				t.Errorf("got %.200q, want %.200q", out.String(), tt.want)
			}
		})
	}
}

type sizes chan remotecommand.TerminalSize

func (s sizes) of(width, height uint16) sizes {
	s <- remotecommand.TerminalSize{Width: width, Height: height}
	return s
}

func (s sizes) Next() *remotecommand.TerminalSize {
	size := <-s
	return &size
}

// safeBuffer is a buffer that several may write to and read from.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// attach streams with a container until it ends, with what is written to the returned pipe as its input.
func attach(w *world, id string, stdin, tty bool) (input io.WriteCloser, output *safeBuffer, ended chan error) {
	w.Helper()
	answer, err := w.Attach(context.Background(), &v1.AttachRequest{ContainerId: id, Stdin: stdin, Stdout: true, Stderr: !tty, Tty: tty})
	w.must(err)
	output, ended = &safeBuffer{}, make(chan error, 1)
	options := remotecommand.StreamOptions{Stdout: output, Tty: tty}
	if !tty {
		options.Stderr = output
	}
	if stdin {
		var in io.Reader
		in, input = io.Pipe()
		options.Stdin = in
	}
	executor := client(w, answer.GetUrl())
	go func() { ended <- executor.StreamWithContext(context.Background(), options) }()
	return input, output, ended
}

func TestAttach(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("attach")
	echo := "while read line; do echo got $line; done; echo no more"
	for name, tty := range map[string]bool{"pipes": false, "a terminal": true} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.start(pod, echo, func(c *v1.ContainerConfig) { c.Stdin, c.StdinOnce, c.Tty = true, true, tty })
			input, output, ended := attach(w, id, true, tty)
			_, watching, watched := attach(w, id, false, tty)
			_, err := io.WriteString(input, "one\n")
			w.must(err)
			w.eventually(func() bool { return strings.Contains(output.String(), "got one") }, "an answer")
			w.eventually(func() bool { // the other may be attached only after some of them
				_, err := io.WriteString(input, "two\n")
				w.must(err)
				return strings.Contains(watching.String(), "got two")
			}, "the other hears it too")
			w.must(input.Close())
			w.must(<-ended)
			w.must(<-watched)
			if !strings.Contains(output.String(), "no more") {
				t.Errorf("output is %q", output)
			}
			if got := w.log(id); !strings.Contains(got, "got one") || !strings.Contains(got, "no more") {
				t.Errorf("log is %q", got)
			}
		})
	}
	t.Run("input stays open for the next unless it is for one only", func(t *testing.T) {
		w := w.in(t)
		id := w.start(pod, echo, func(c *v1.ContainerConfig) { c.Stdin = true })
		first, output, _ := attach(w, id, true, false)
		_, err := io.WriteString(first, "one\n")
		w.must(err)
		w.eventually(func() bool { return strings.Contains(output.String(), "got one") }, "an answer")
		w.must(first.Close())
		second, output, _ := attach(w, id, true, false)
		_, err = io.WriteString(second, "two\n")
		w.must(err)
		w.eventually(func() bool { return strings.Contains(output.String(), "got two") }, "an answer to the second")
	})
	t.Run("a container that has ended", func(t *testing.T) {
		w := w.in(t)
		id := w.start(pod, "true")
		w.ended(id)
		if _, err := w.Attach(context.Background(), &v1.AttachRequest{ContainerId: id, Stdout: true}); err == nil {
			t.Error("there is nothing to attach to")
		}
	})
}

func TestPortForward(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("ports")
	w.logged(w.start(pod, "", func(c *v1.ContainerConfig) { c.Command = answer(8080, "hello") }), "listening")
	response, err := w.PortForward(context.Background(), &v1.PortForwardRequest{PodSandboxId: pod, Port: []int32{8080}})
	w.must(err)
	u, err := url.Parse(response.GetUrl())
	w.must(err)
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{Host: u.Host})
	w.must(err)
	stop, ready := make(chan struct{}), make(chan struct{})
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	forwarder, err := portforward.New(dialer, []string{"0:8080"}, stop, ready, io.Discard, os.Stderr)
	w.must(err)
	done := make(chan error, 1)
	go func() { done <- forwarder.ForwardPorts() }()
	<-ready
	ports, err := forwarder.GetPorts()
	w.must(err)
	for range 3 {
		if got := hear(t, "127.0.0.1:"+strconv.Itoa(int(ports[0].Local))); got != "hello" {
			t.Errorf("got %q", got)
		}
	}
	close(stop)
	w.must(<-done)
}
