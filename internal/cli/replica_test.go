package cli_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// The verbs that reach into a replica: exec, cp and port-forward.
func TestReachingIntoAReplica(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("demo", 2, "exec python3 -c 'import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=7777, bind=None)'"))
	d.expect(d.types("submit", "-f", file), 0)
	d.expect(d.types("wait", "demo", "--for=running"), 0)
	d.World.Run(t, "exec passes input, output, errors and the exit code", func(t *testing.T, w *local.World) {
		d := desk{w}
		cmd := d.command("exec", "-i", "demo", "worker-1", "--", "sh", "-c", "tr a-z A-Z; echo rank $RANK >&2; exit 7")
		cmd.Stdin = strings.NewReader("some input")
		o := finish(d, cmd)
		if o.Stdout != "SOME INPUT" || o.Code != 7 {
			t.Errorf("it ends with %+v", o)
		}
	})
	d.World.Run(t, "exec on a terminal gives the terminal", func(t *testing.T, w *local.World) {
		d := desk{w}
		cmd := d.command("exec", "demo", "demo-worker-0", "--", "sh", "-c", "tty; read answer; echo you said $answer; exit 5")
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close() //nolint:errcheck // only read
		lines := bufio.NewScanner(terminal)
		await := func(pattern string) {
			for lines.Scan() {
				if regexp.MustCompile(pattern).MatchString(lines.Text()) {
					return
				}
			}
			t.Fatalf("it ends before %q", pattern)
		}
		await("^/dev/pts/")
		if _, err := io.WriteString(terminal, "hello\r"); err != nil {
			t.Fatal(err)
		}
		await("you said hello")
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 5 {
			t.Errorf("it ends with code %d", code)
		}
	})
	d.World.Run(t, "cp copies in and out", func(t *testing.T, w *local.World) {
		d, here := desk{w}, t.TempDir()
		write(t, filepath.Join(here, "model.bin"), "weights")
		there := filepath.Join(t.TempDir(), "there.bin")
		d.expect(d.types("cp", "demo", filepath.Join(here, "model.bin"), "worker-1:"+there), 0)
		d.expect(d.types("cp", "demo", "worker-1:"+there, filepath.Join(here, "back.bin")), 0)
		if got, err := os.ReadFile(filepath.Join(here, "back.bin")); err != nil || string(got) != "weights" {
			t.Errorf("it comes back as %q (%v)", got, err)
		}
	})
	d.World.Run(t, "port-forward leads to the replica", func(t *testing.T, w *local.World) {
		d := desk{w}
		d.Eventually("the replica serves", func() error {
			return found(d.types("exec", "demo", "worker-1", "--", "python3", "-c", "import socket; socket.create_connection(('localhost', 7777)); print('serves')").Stdout, "serves")
		})
		cmd := d.command("port-forward", "demo", "worker-1", ":7777")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		lines := bufio.NewScanner(out)
		lines.Scan()
		port := regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> 7777`).FindStringSubmatch(lines.Text())
		if port == nil {
			t.Fatalf("it says %q", lines.Text())
		}
		conn, err := net.Dial("tcp", port[1])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // only read
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(conn, "HEAD / HTTP/1.0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 200 ") {
			t.Errorf("it answers %q (%v)", answer, err)
		}
	})
	for _, row := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"which replica", []string{"exec", "demo", "--", "true"}, 2, "demo has 2 replicas: name one of worker-0, worker-1$"},
		{"a replica that it has", []string{"exec", "demo", "worker-7", "--", "true"}, 2, "demo has no replica worker-7: it has worker-0, worker-1$"},
		{"a container that it has", []string{"exec", "-c", "side", "demo", "worker-0", "--", "true"}, 2, "demo-worker-0 has no container side: it has pytorch$"},
		{"a file that exists", []string{"cp", "demo", "nowhere.bin", "worker-0:/tmp/x"}, 2, "nowhere.bin: no such file"},
	} {
		d.World.Run(t, "they need "+row.name, func(_ *testing.T, w *local.World) {
			d := desk{w}
			d.refuses(d.types(row.args...), row.code, row.says)
		})
	}
}

func TestWhyForPrograms(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.expect(finish(d, d.run("echo no data; exit 7", "--name=bad")), 1)
	var got struct {
		Job, State, Reason, Text string
		Failure                  struct{ ExitCode int }
		Ledger                   []struct{ Attempt int }
		Pods                     []struct{ Replica, Phase string }
	}
	if text := d.types("why", "bad", "-o", "json").Stdout; json.Unmarshal([]byte(text), &got) != nil {
		t.Fatalf("not JSON:\n%s", text)
	}
	if got.Job != "bad" || got.State != "Failed" || got.Failure.ExitCode != 7 || !strings.HasPrefix(got.Text, "bad failed ") ||
		len(got.Ledger) != 1 || got.Ledger[0].Attempt != 1 || len(got.Pods) != 1 || got.Pods[0].Replica != "worker-0" || got.Pods[0].Phase == "" {
		t.Errorf("it says %+v", got)
	}
}

// get -w prints the jobs that there are, and then what changes.
func TestWatchingJobs(t *testing.T) {
	t.Parallel()
	d, stage := newDesk(t), stage(t.TempDir())
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job("early", 1, "exec sleep 600"))
	d.expect(d.types("submit", "-f", file), 0)
	d.expect(d.types("wait", "early", "--for=running"), 0)
	said := &transcript{}
	cmd := d.command("get", "-w")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	d.Eventually("what there is", func() error { return said.has(`\ANAME +KIND +STATE .*\nearly +PyTorchJob +Running +1/1 `) })
	write(t, file, job("late", 1, stage.until("end")))
	d.expect(d.types("submit", "-f", file), 0)
	d.Eventually("the new one runs", func() error { return said.has(`(?m)^late +PyTorchJob +Running +1/1 `) })
	stage.give(t, "end")
	d.Eventually("it has ended", func() error { return said.has(`(?m)^late +PyTorchJob +Succeeded `) })
	d.expect(d.types("delete", "early"), 0)
	d.Eventually("the other is deleted", func() error { return said.has(`(?m)^early +PyTorchJob +Deleted `) })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if n := strings.Count(said.String(), "NAME "); n != 1 {
		t.Errorf("there are %d headers in\n%s", n, said)
	}
}
