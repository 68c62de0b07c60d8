package cluster_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestKubectlLogs(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	again := local.Pod("again", `if [ -e /go/second ]; then echo the second time; sleep 600; fi; touch /go/second; echo the first time; exit 1`)
	again.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	w.Create(withGo(again))
	t.Run("follows a container to its end", func(t *testing.T) {
		w.Create(withGo(local.Pod("followed", `echo one; while [ ! -e /go/on ]; do sleep 0.1; done; echo two`)))
		ready(w, "followed")
		cmd := w.Command("logs", "-f", "followed")
		lines := start(t, cmd)
		if lines.Scan(); lines.Text() != "one" {
			t.Errorf("it begins with %q", lines.Text())
		}
		run(w, "followed", "touch /go/on")
		if lines.Scan(); lines.Text() != "two" {
			t.Errorf("it goes on with %q", lines.Text())
		}
		if lines.Scan() {
			t.Errorf("it does not end but says %q", lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("shows as much as is asked for", func(t *testing.T) {
		w.Create(local.Pod("speaks", "echo early; sleep 4; echo late"))
		w.UntilPhase("speaks", corev1.PodSucceeded)
		late := strings.Fields(w.Logs("speaks", "--tail=1", "--timestamps"))
		for _, c := range []struct{ want, flag string }{
			{"early\nlate\n", "--tail=-1"}, {"late\n", "--tail=1"}, {"", "--tail=0"},
			{"late\n", "--since-time=" + late[0]}, {"early\nlate\n", "--since=1h"}, {"early\n", "--limit-bytes=6"},
		} {
			if got := w.Logs("speaks", c.flag); got != c.want {
				t.Errorf("with %s it shows %q, not %q", c.flag, got, c.want)
			}
		}
		w.Eventually("all of it is older than a second", func() error {
			if got := w.Logs("speaks", "--since=1s"); got != "" {
				return fmt.Errorf("it shows %q", got)
			}
			return nil
		})
	})
	t.Run("shows the container before", func(t *testing.T) {
		w.Await("the second time", "logs", "again")
		if got := w.Logs("again", "--previous"); got != "the first time\n" {
			t.Errorf("it shows %q", got)
		}
	})
}

func TestKubectlExec(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(idle("works"))
	ready(w, "works")
	t.Run("passes input, output, errors and the exit code", func(t *testing.T) {
		o := w.Try("some input", "exec", "-i", "works", "--", "sh", "-c", "tr a-z A-Z; echo wrong >&2; exit 7")
		if o.Stdout != "SOME INPUT" || !strings.HasPrefix(o.Stderr, "wrong\n") || o.Code != 7 {
			t.Errorf("it ends with %+v", o)
		}
	})
	t.Run("gives a terminal", func(t *testing.T) {
		cmd := w.Command("exec", "-it", "works", "--", "sh", "-c", `
			sized() { until [ "$(stty size)" = "$1" ]; do sleep 0.1; done; echo it is $1; }
			tty; sized "33 77"; read answer; echo you said $answer; sized "44 88"; exit 5`)
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 77})
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close() //nolint:errcheck // only read
		screen := &screen{from: terminal}
		screen.until(t, "/dev/pts/")
		screen.until(t, "it is 33 77")
		if err := pty.Setsize(terminal, &pty.Winsize{Rows: 44, Cols: 88}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(terminal, "hello\r"); err != nil {
			t.Fatal(err)
		}
		screen.until(t, "you said hello")
		screen.until(t, "it is 44 88")
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("says what is wrong with a command that does not exist", func(t *testing.T) {
		if o := w.Try("", "exec", "works", "--", "no-such-program"); o.Code == 0 || !strings.Contains(o.Stderr, `"no-such-program": not found in PATH`) {
			t.Errorf("it ends with %+v", o)
		}
	})
}

func TestKubectlAttach(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	pod := local.Pod("listens", `while read line; do echo heard $line; [ "$line" = end ] && exit; done`)
	pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].StdinOnce = true, true
	w.Create(pod)
	ready(w, "listens")
	o := w.Try("hello\nend\n", "attach", "-i", "listens")
	if o.Code != 0 || o.Stdout != "heard hello\nheard end\n" {
		t.Errorf("it ends with %+v", o)
	}
	w.UntilPhase("listens", corev1.PodSucceeded)
}

func TestKubectlCp(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(withGo(idle("box")))
	ready(w, "box")
	from, to := t.TempDir(), t.TempDir()
	content := bytes.Repeat([]byte{0, 1, 2, '\r', '\n', 0xff}, 1<<18)
	for name, bytes := range map[string][]byte{"model.bin": content, "deep/er/file": []byte("deep")} {
		path := filepath.Join(from, "files", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, bytes, 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	w.Kubectl("cp", filepath.Join(from, "files"), "box:/go/files")
	w.Kubectl("cp", "box:/go/files", filepath.Join(to, "files"))
	if got, err := os.ReadFile(filepath.Join(to, "files", "model.bin")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the large file comes back with %d bytes (%v)", len(got), err)
	}
	if got := read(t, filepath.Join(to, "files", "deep/er/file")); got != "deep" {
		t.Errorf("the deep file comes back as %q", got)
	}
	if got := run(w, "box", "stat -c %a /go/files/model.bin"); got != "640\n" {
		t.Errorf("in the pod its mode is %s", got)
	}
}

func TestKubectlPortForward(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(namesService)
	w.Create(serving("far"))
	ready(w, "far")
	awaitEndpoints(w, "names", 1)
	for target, port := range map[string]string{"pod/far": "2222", "service/names": "80"} {
		t.Run("to "+target, func(t *testing.T) {
			cmd := w.Command("port-forward", target, ":"+port)
			lines := start(t, cmd)
			lines.Scan()
			found := regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> 2222`).FindStringSubmatch(lines.Text())
			if found == nil {
				t.Fatalf("it says %q", lines.Text())
			}
			for range 3 {
				conn, err := net.Dial("tcp", found[1])
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(conn); err != nil || string(got) != "far" {
					t.Errorf("the port answers %q (%v)", got, err)
				}
				_ = conn.Close()
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// What a person looks at is as they know it from any cluster.
func TestKubectlShows(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Create(idle("works"), local.Pod("fails", "echo broken; exit 3"))
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"wait returns when a condition is met", "pod/works condition met\n", []string{"wait", "--for=condition=Ready", "pod/works", "--timeout=60s"}},
		{"wait takes a field", "pod/fails condition met\n", []string{"wait", "--for=jsonpath={.status.phase}=Failed", "pod/fails", "--timeout=60s"}},
		{"describe shows what a pod runs", "exec sleep 600", []string{"describe", "pod", "works"}},
		{"describe shows what happened", "Container started", []string{"describe", "pod", "works"}},
		{"describe shows how a pod ended", "Exit Code:    3", []string{"describe", "pod", "fails"}},
		{"get shows that a pod runs", "works   1/1     Running   0 ", []string{"get", "pods"}},
		{"get shows that a pod failed", "fails   0/1     Error     0 ", []string{"get", "pods"}},
		{"get shows where a pod is", "trainyard", []string{"get", "pod", "works", "-o", "wide"}},
		{"events shows what happened", "Started", []string{"events", "--for", "pod/works"}},
		{"get nodes has one that is ready", "trainyard   Ready", []string{"get", "nodes"}},
		{"describe shows what pods ask of the node", "Allocated resources:", []string{"describe", "node", "trainyard"}},
		{"top shows what the node uses", "trainyard", []string{"top", "nodes"}},
		{"top shows what a pod uses", "works", []string{"top", "pods"}},
		{"explain knows the fields", "DESCRIPTION:", []string{"explain", "pod.spec.restartPolicy"}},
		{"api-resources lists gangs", "scheduling.k8s.io/v1beta1", []string{"api-resources", "--api-group=scheduling.k8s.io"}},
		{"auth knows who one is", "trainyard-admin", []string{"auth", "whoami"}},
	} {
		t.Run(c.name, func(t *testing.T) { w.Await(c.want, c.args...) })
	}
}

// withGo gives a pod a volume at /go.
func withGo(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "go", MountPath: "/go"})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "go", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	return pod
}

// start starts a command and gives the lines that it prints. It is killed when the test ends.
func start(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return bufio.NewScanner(out)
}

// screen is what a terminal shows.
type screen struct {
	from io.Reader
	seen []byte
}

// until reads until the terminal shows something, which is then forgotten with all before it.
func (s *screen) until(t *testing.T, want string) {
	t.Helper()
	for buffer := make([]byte, 1024); ; {
		if _, rest, found := bytes.Cut(s.seen, []byte(want)); found {
			s.seen = rest
			return
		}
		n, err := s.from.Read(buffer)
		s.seen = append(s.seen, buffer[:n]...)
		if err != nil {
			t.Fatalf("the terminal ends (%v) without %q after %q", err, want, s.seen)
		}
	}
}
