package procrun

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// world is a runtime with a directory of its own.
type world struct {
	testing.TB
	*Runtime
	dir string
}

// testTimeout is how long a test waits for what must happen.
const testTimeout = 30 * time.Second

// newWorld starts a runtime, with the changes to its configuration that matter to the test.
func newWorld(t testing.TB, changes ...func(*Config)) *world {
	t.Helper()
	dir := t.TempDir()
	config := Config{
		Root: filepath.Join(dir, "runtime"), WorkDir: "/tmp", Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/tmp"},
		Bridge: "pods", Pods: netip.MustParsePrefix("10.99.0.0/16"), Node: netip.MustParseAddr("10.99.0.1"),
		Services: netip.MustParsePrefix("10.98.0.0/16"), GraceLimit: time.Second,
	}
	if rootless() {
		uid, err := strconv.Atoi(os.Getenv("PROCRUN_UID"))
		if err != nil {
			t.Fatal(err)
		}
		config.User = &User{UID: uint32(uid), GID: uint32(uid)}
	}
	for _, change := range changes {
		change(&config)
	}
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, Runtime: r, dir: dir}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// in is the same world for a part of the test.
func (w *world) in(t testing.TB) *world {
	part := *w
	part.TB = t
	return &part
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// pod runs a sandbox.
func (w *world) pod(name string, changes ...func(*v1.PodSandboxConfig)) string {
	w.Helper()
	config := podConfig(w, name)
	for _, change := range changes {
		change(config)
	}
	id, err := w.RunPodSandbox(context.Background(), config, "")
	w.must(err)
	return id
}

func podConfig(w *world, name string) *v1.PodSandboxConfig {
	return &v1.PodSandboxConfig{
		Metadata: &v1.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name}, Hostname: name,
		LogDirectory: filepath.Join(w.dir, "logs", name), Labels: map[string]string{"pod": name},
		Linux: &v1.LinuxPodSandboxConfig{SecurityContext: &v1.LinuxSandboxSecurityContext{
			NamespaceOptions: &v1.NamespaceOption{Pid: v1.NamespaceMode_CONTAINER},
		}},
	}
}

// create creates a container that runs a shell script.
func (w *world) create(pod, script string, changes ...func(*v1.ContainerConfig)) string {
	w.Helper()
	config := &v1.ContainerConfig{
		Metadata: &v1.ContainerMetadata{Name: "main"}, Image: &v1.ImageSpec{Image: "any"}, LogPath: newID()[:8] + "/0.log",
		Command: []string{"sh", "-c", script}, Labels: map[string]string{"container": "main"},
	}
	for _, change := range changes {
		change(config)
	}
	s, err := w.sandbox(pod)
	w.must(err)
	id, err := w.CreateContainer(context.Background(), pod, config, s.config)
	w.must(err)
	return id
}

// start creates and starts a container that runs a shell script.
func (w *world) start(pod, script string, changes ...func(*v1.ContainerConfig)) string {
	w.Helper()
	id := w.create(pod, script, changes...)
	w.must(w.StartContainer(context.Background(), id))
	return id
}

// ended waits for the container's end.
func (w *world) ended(id string) *v1.ContainerStatus {
	w.Helper()
	c, err := w.container(id)
	w.must(err)
	select {
	case <-c.done:
	case <-time.After(testTimeout):
		w.Fatalf("container did not end in %s; its log: %s", testTimeout, w.log(id))
	}
	return c.status()
}

// run runs a script to its end and returns its output and exit code.
func (w *world) run(pod, script string, changes ...func(*v1.ContainerConfig)) (string, int) {
	w.Helper()
	id := w.start(pod, script, changes...)
	status := w.ended(id)
	return w.log(id), int(status.GetExitCode())
}

// log returns what the container wrote, of both streams, parts joined.
func (w *world) log(id string) string {
	w.Helper()
	c, err := w.container(id)
	w.must(err)
	text, err := os.ReadFile(c.logPath)
	w.must(err)
	return content(w, string(text))
}

func content(w *world, log string) string {
	w.Helper()
	var b strings.Builder
	for entry := range strings.Lines(log) {
		fields := strings.SplitN(strings.TrimSuffix(entry, "\n"), " ", 4)
		if len(fields) != 4 {
			w.Fatalf("not a log entry: %q", entry)
		}
		if _, err := time.Parse(time.RFC3339Nano, fields[0]); err != nil {
			w.Fatalf("not a time: %q", entry)
		}
		b.WriteString(fields[3])
		if fields[2] == "F" {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// logged waits until the container has written text.
func (w *world) logged(id, text string) {
	w.Helper()
	w.eventually(func() bool { return strings.Contains(w.log(id), text) }, "log contains "+strconv.Quote(text))
}

// eventually polls until the condition holds.
func (w *world) eventually(condition func() bool, what string) {
	w.Helper()
	deadline := time.After(testTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			w.Fatalf("not within %s: %s", testTimeout, what)
		}
	}
}

// file writes a file in the world's directory.
func (w *world) file(name, content string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(content), 0o644))
	return path
}
