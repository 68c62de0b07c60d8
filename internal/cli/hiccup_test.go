package cli_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// wire is a proxy to the API server that a test can cut and mend.
type wire struct {
	kubeconfig string
	server     string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	// requests is held while none is let through.
	requests sync.RWMutex
}

// newWire starts a proxy to the API server of a kubeconfig, and writes a kubeconfig for the proxy.
func newWire(t *testing.T, kubeconfig string) *wire {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		w.server, server.Host = server.Host, listener.Addr().String()
		cluster.Server = server.String()
	}
	if err := clientcmd.WriteToFile(*config, w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		w.Cut()
	})
	return w
}

func (w *wire) carry(near net.Conn) {
	defer near.Close() //nolint:errcheck // it may be cut already
	far, err := net.Dial("tcp4", w.server)
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // likewise
	if !w.keep(near, far) {
		return
	}
	go func() {
		_, _ = io.Copy(letThrough{far, &w.requests}, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// letThrough writes while the lock is free.
type letThrough struct {
	io.Writer
	held *sync.RWMutex
}

func (l letThrough) Write(p []byte) (int, error) {
	l.held.RLock()
	defer l.held.RUnlock()
	return l.Writer.Write(p)
}

func (w *wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, conns...)
	return !w.cut
}

// Cut breaks all connections and lets no other come about.
func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// Mend lets connections come about again.
func (w *wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// stage is a directory by which a test signals running scripts to go on.
type stage string

// until is shell code that waits until the test has given a cue.
func (s stage) until(cue string) string {
	return fmt.Sprintf("until [ -e %s/%s ]; do sleep 0.1; done", string(s), cue)
}

func (s stage) give(t *testing.T, cue string) { write(t, filepath.Join(string(s), cue), "") }

// `logs -f` prints every line once and in order: through an outage of the API server in which a line is written, through a restart
// of everyone, and through a restart in place that happens while the API server cannot be reached.
func TestLogsFollowThroughTrouble(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	wire, stage := newWire(t, local.Shared(t).Kubeconfig()), stage(t.TempDir())
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, file, job("gang", 2, strings.Join([]string{"echo one", stage.until("two"), "echo two", stage.until("three"),
		"[ $RANK$TRAINYARD_ATTEMPT != 10 ] || exit 1", "[ $TRAINYARD_ATTEMPT = 1 ] || sleep 600", "echo three"}, "; ")))
	d.expect(d.types("submit", "-f", file), 0)
	write(t, file, job("solo", 1, strings.Join([]string{"echo one", stage.until("two"), "echo two",
		"mkdir " + string(stage) + "/fallen 2> /dev/null && exit 1", "echo three"}, "; ")))
	d.expect(d.types("submit", "-f", file), 0)

	gang, solo := d.follows(wire, "gang"), d.follows(wire, "solo")
	d.Eventually("the gang's first lines", func() error { return found(gang.said(), "worker-0 | one", "worker-1 | one") })
	d.Eventually("the other's first line", func() error { return found(solo.said(), "worker-0 | one") })
	wire.Cut()
	stage.give(t, "two")
	d.Eventually("what the cut keeps from us", func() error { return found(d.types("logs", "gang").Stdout, "worker-0 | two", "worker-1 | two") })
	d.expect(d.types("wait", "solo"), 0)
	d.Eventually("a word on that", func() error {
		return gang.err.has("trainyard: the cluster does not answer: waiting for it\n$")
	})
	wire.Mend()
	d.Eventually("it is made up for", func() error { return found(gang.said(), "worker-0 | two", "worker-1 | two") })
	d.Eventually("a word on that, too", func() error { return gang.err.has("trainyard: the cluster answers again\n$") })
	stage.give(t, "three")

	for f, want := range map[*following]map[string]string{
		gang: {"worker-0": "one two one two three", "worker-1": "one two one two three"},
		solo: {"worker-0": "one two one two three"},
	} {
		f.ends(t)
		if noise := strings.TrimSpace(regexp.MustCompile(`(?m)^trainyard: the cluster (does not answer: waiting for it|answers again)$`).ReplaceAllString(f.err.String(), "")); noise != "" {
			t.Errorf("besides, it says:\n%s", noise)
		}
		for replica, words := range want {
			if got := f.wordsOf(replica); got != words {
				t.Errorf("%s says %q, want %q; all of it:\n%s", replica, got, words, f.said())
			}
		}
	}
}

// following is a `trainyard logs -f` that runs.
type following struct {
	out, err transcript
	ended    chan int
}

func (d desk) follows(w *wire, job string, flags ...string) *following {
	d.Helper()
	f := &following{ended: make(chan int, 1)}
	cmd := d.command(append([]string{"logs", "-f", job, "--kubeconfig=" + w.kubeconfig}, flags...)...)
	cmd.Stdout, cmd.Stderr = &f.out, &f.err
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() {
		_ = cmd.Wait()
		f.ended <- cmd.ProcessState.ExitCode()
	}()
	return f
}

func (f *following) said() string { return f.out.String() }

// ends waits for its end, which must be a good one.
func (f *following) ends(t *testing.T) {
	t.Helper()
	if code := <-f.ended; code != 0 {
		t.Errorf("`logs -f` ends with code %d", code)
	}
}

// wordsOf is what a replica said.
func (f *following) wordsOf(replica string) string {
	var words []string
	for _, line := range regexp.MustCompile(`(?m)^`+replica+` \| (.*)$`).FindAllStringSubmatch(f.said(), -1) {
		words = append(words, line[1])
	}
	return strings.Join(words, " ")
}

// The pod is gone before any request for its log gets through: `logs -f` says that the log is lost.
func TestALogThatWasGoneTooSoon(t *testing.T) {
	t.Parallel()
	d, wire := newDesk(t), newWire(t, local.Shared(t).Kubeconfig())
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, strings.Replace(job("brief", 1, "echo $TRAINYARD_ATTEMPT; [ $TRAINYARD_ATTEMPT = 1 ] || exec sleep 600"), "{backoffLimit: 1}", "{cleanPodPolicy: All}", 1))
	d.expect(d.types("submit", "-f", file), 0)
	f := d.follows(wire, "brief")
	d.Eventually("it is followed", func() error { return found(f.said(), "worker-0 | 0") })
	d.expect(d.types("suspend", "brief"), 0)
	d.expect(d.types("wait", "brief", "--for=suspended"), 0)
	wire.requests.Lock()
	d.expect(d.types("resume", "brief"), 0)
	d.expect(d.types("wait", "brief"), 0)
	d.Eventually("the pod is gone", func() error {
		if left := d.Kubectl("get", "pods", "-o", "name"); left != "" {
			return fmt.Errorf("left: %s", left)
		}
		return nil
	})
	wire.requests.Unlock()
	f.ends(t)
	if got := f.wordsOf("worker-0"); got != "0 (this log was gone before it could be read)" {
		t.Errorf("it prints:\n%s", f.said())
	}
}
