package cli_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/testing/browser"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// openDashboard starts `trainyard ui` for the shared cluster and opens its link in a browser.
func (d desk) openDashboard(t *testing.T) *browser.Tab {
	t.Helper()
	cmd := local.CLI("ui", "--no-open", "--data-dir="+local.DataDir(t))
	cmd.Env = os.Environ()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the dashboard ends with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the dashboard prints no link")
	}
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`).FindString(lines.Text())
	if link == "" {
		t.Fatalf("no link in %q", lines.Text())
	}
	return browser.Open(t, link)
}

// TestTheDashboardChangesJobs looks at a training with torch that loses a worker, and does everything to it that a person can do in a browser.
func TestTheDashboardChangesJobs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	stage := stage(local.Folder(t))
	file := filepath.Join(t.TempDir(), "job.yaml")
	program, err := os.ReadFile("testdata/ddp.py")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(string(stage), "ddp.py"), string(program))
	write(t, file, job("demo", 2, "[ $TRAINYARD_ATTEMPT != 0 ] || exec /usr/bin/python3 "+string(stage)+"/ddp.py "+string(stage)+"; "+stage.until("end")))
	d.expect(d.types("submit", "-f", file), 0)
	b := d.openDashboard(t)
	b.GoTo("/?q=" + d.Namespace)
	b.Becomes("document.querySelectorAll('a.job').length", func(n string) bool { return n == "1" }, "the job")
	b.Click("a.job")
	b.Shows("demo · Trainyard", "Running")

	path := b.Eval("location.pathname")
	b.GoTo(path + "/timeline")
	b.Shows("worker-0", "worker-1")
	d.Eventually("both ranks train", func() error {
		return found(d.types("logs", "demo").Stdout, "worker-0 | step 3 loss=", "worker-1 | step 3 loss=")
	})
	stage.give(t, "fail")
	failed, worker := time.Now(), `button.span.bad[aria-label^="worker-1, attempt 1,"]`
	b.Becomes("document.querySelectorAll('"+worker+"').length", func(n string) bool { return n == "1" }, "the worker that failed")
	t.Logf("the timeline shows the failure %.1f s after the training was told to fail", time.Since(failed).Seconds())
	b.Click(worker)
	b.Shows("RuntimeError: the shard <of rank 1> is broken")
	b.GoTo(path + "/scalars")
	b.Shows("loss")
	b.GoTo(path)
	b.Shows("Worker 1", "exited with code 1", "Running")

	b.GoTo("/capacity")
	b.Shows("trainyard", "ready", "Who holds what", d.Namespace+"/demo")
	b.GoTo(path)
	b.ClickButton("Suspend")
	b.Shows("demo is suspended.", "Resume")
	b.ClickButton("Resume")
	b.Shows("demo is resumed.", "Suspend", "Running")
	b.ClickButton("Scale…")
	b.Becomes("document.querySelector('dialog input')?.value ?? ''", func(n string) bool { return n == "2" }, "the present number")
	b.Eval("(document.querySelector('dialog input').value = '1', document.querySelector('dialog input').dispatchEvent(new Event('input')))")
	b.ClickButton("Scale")
	b.Shows("demo is scaled to 1.")
	d.Eventually("one replica is ready", func() error { return found(d.types("get", "demo").Stdout, "Running", "1/1") })
	stage.give(t, "end")
	b.Shows("Succeeded", "Run again")

	b.ClickButton("Run again")
	b.Becomes("location.pathname", func(now string) bool { return strings.HasPrefix(now, "/jobs/") && now != path }, "another job")
	b.Shows("demo", "Succeeded")
	b.ClickButton("Delete…")
	b.ClickButton("Delete")
	b.Becomes("document.querySelectorAll('.chip.Deleted').length", func(n string) bool { return n != "0" }, "that it is deleted")
	d.Eventually("the job is deleted", func() error {
		return found(d.types("get").Stdout+d.types("get").Stderr, "There are no jobs in namespace")
	})
}
