package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// TestAJobCanBeReadWhenItIsGone looks at jobs of a cluster that runs no more, at one that was deleted, and at attempts whose pods are gone.
func TestAJobCanBeReadWhenItIsGone(t *testing.T) {
	t.Parallel()
	d, dir := desk{&local.World{TB: t}}, t.TempDir()
	types := func(args ...string) local.Outcome {
		t.Helper()
		return finish(d, local.CLI(append([]string{args[0], "--data-dir=" + dir}, args[1:]...)...))
	}
	d.refuses(types("history"), 2, "there is no local cluster in")

	// A run has its own cluster, which ends with it.
	const script = "echo attempt $TRAINYARD_ATTEMPT; echo of rank $RANK; exit $((1 - TRAINYARD_ATTEMPT))"
	d.expect(types("run", "--name=demo", "--retries=1", "--env=HF_TOKEN=abc", "--", "sh", "-c", script), 0, `^demo succeeded`)
	const stopped = `^The local cluster is not running\. This is what was recorded\.$`
	d.expect(types("get"), 0, stopped, `^demo +PyTorchJob +Succeeded +0/1 +2 +1/1 `)
	d.expect(types("get", "demo", "-o", "yaml"), 0, stopped, `^kind: PyTorchJob$`, `value: \(masked\)$`)
	d.expect(types("why", "demo"), 0, stopped, `^demo succeeded \d+s ago`, `^  attempt 1 .* exited with code 1`)
	d.expect(types("events", "demo"), 0, stopped, `demo +is restarting`, `demo +is successfully completed`)
	if o := types("logs", "demo", "--attempt=1"); o.Code != 0 || o.Stdout != "worker-0 | attempt 0\nworker-0 | of rank 0\n" {
		t.Errorf("the log of the first attempt is %+v", o)
	}
	d.expect(types("logs", "demo", "-f", "--tail=1"), 0, `\Aworker-0 \| of rank 0$`)
	d.expect(types("trace", "demo"), 0, stopped, `"name":"attempt 1".*"message":"Worker 0 .* exited with code 1.*"name":"training".*"name":"restart".*"name":"attempt 2"`)
	d.refuses(types("trace", "demo", "--to=localhost"), 2, "--to localhost: use an address such as http://localhost:4318")
	d.refuses(types("logs", "other"), 1, "there is no such job as other in namespace default: `trainyard history` lists the jobs")

	// The next cluster of the directory knows it, and another job of the name does not hide it.
	up := local.StartUp(t, dir).Ready()
	d.expect(types("logs", "demo", "--attempt=1"), 0, `\Aworker-0 \| attempt 0\n`)
	d.expect(types("delete", "demo"), 0)
	d.Eventually("the deletion is recorded", func() error {
		return found(types("why", "demo").Stderr, "demo was deleted", "s ago. This is what was recorded.")
	})
	d.expect(types("why", "demo"), 0, `^demo succeeded`)
	d.refuses(types("get", "demo"), 1, "there is no such job")
	d.expect(types("get", "--history"), 0, `^demo +PyTorchJob +Succeeded`)
	d.expect(types("run", "--name=demo", "--", "echo", "second"), 0)
	d.expect(types("logs", "demo"), 0, `\Aworker-0 \| second\n\z`)
	var lines []string
	d.Eventually("the second run is recorded", func() error {
		table := types("history", "demo").Stdout
		if lines = strings.Split(strings.TrimSpace(table), "\n"); len(lines) != 3 || strings.Count(table, "Succeeded") != 2 {
			return fmt.Errorf("the history is\n%s", table)
		}
		return nil
	})
	d.expect(types("logs", strings.Fields(lines[2])[1]), 0, `attempt 0`, `attempt 1`)

	// A cluster that is killed leaves what was written until then.
	file := filepath.Join(t.TempDir(), "job.yaml")
	traced := strings.Replace(job("long", 1, "echo begins; echo $TRACEPARENT; while true; do sleep 0.1; done"), "{name: long}",
		"{name: long, annotations: {traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01}}", 1)
	write(t, file, traced)
	d.expect(types("submit", "-f", file), 0)
	d.Eventually("the job, its line and the start of its pod are recorded", func() error {
		parts, _ := filepath.Glob(filepath.Join(dir, "record", "v1", "jobs", "default", "*", "log", "0", "worker-0", "*", "0.log"))
		text := ""
		for _, part := range parts {
			content, err := os.ReadFile(part)
			if err != nil {
				return err
			}
			text += string(content)
		}
		return found(text+types("history").Stdout+types("trace", "long").Stdout, "begins", "00-0af7", "long", `"name":"starting"`) // kubelet reports later than the container writes
	})
	up.Signal(syscall.SIGKILL)
	up.Wait()
	d.expect(types("logs", "long"), 0, `^worker-0 \| begins$`)
	d.tracesWhatPodsKnow(types("logs", "long").Stdout, types("trace", "long").Stdout)
	d.Eventually("the cluster has ended", func() error { return found(types("history", "long").Stdout, "Interrupted") })
}

// tracesWhatPodsKnow compares the span that the container of a pod was told, which it printed, with the trace of its job.
func (d desk) tracesWhatPodsKnow(log, trace string) {
	d.Helper()
	told := regexp.MustCompile(`00-([0-9a-f]{32})-([0-9a-f]{16})-01`).FindStringSubmatch(log)
	if told == nil {
		d.Fatalf("the container was told no span: %s", log)
	}
	if err := found(trace, `"traceId":"`+told[1]+`"`, `"parentSpanId":"`+told[2]+`","name":"starting"`); err != nil {
		d.Error(err)
	}
}
