package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// The phase that Flyte reads is right in each state of a job that Flyte's backend would create.
func TestFlyteStatusInEachStateOfALife(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	gate := filepath.Join(t.TempDir(), "gate")
	held := fmt.Sprintf("until test -f %s; do sleep 0.1; done; ", gate)
	for name, script := range map[string]string{
		"good":  held,
		"bad-0": held + `case $HOSTNAME in *-0) exit 7;; esac; sleep 600`,
		"bad-1": held + `case $HOSTNAME in *-1) exit 7;; esac; sleep 600`,
	} {
		d.submitTask(t, name, script)
	}
	gone := d.types("flyte", "status", "nobody")
	d.expect(gone, 0, `^Flyte 1: SystemRetryableFailure\n  code: +ResourceDeletedExternally\n`, `^Flyte 2: SystemRetryableFailure\n`)
	if err := found(gone.Stderr, "there is no such job as nobody in namespace"); err != nil {
		t.Error(err)
	}

	d.expect(d.types("suspend", "good"), 0)
	d.expect(d.types("wait", "good", "--for=suspended"), 0)
	d.Eventually("its pods are gone", func() error { // which Flyte 2 takes for failed while they go
		return found(d.types("flyte", "status", "good").Stdout, "Flyte 1: Queued", "Flyte 2: Queued\n  message: JobCreated\n  why:     the newest True condition is Created\n")
	})
	d.expect(d.types("resume", "good"), 0)
	for _, name := range []string{"good", "bad-0", "bad-1"} {
		d.expect(d.types("wait", name, "--for=running"), 0)
	}
	d.expect(d.types("flyte", "status", "pytorchjob/good"), 0, `^Flyte 1: Running\n  why: +the newest True condition is Running\nFlyte 2: Running\n`)

	write(t, gate, "")
	d.expect(d.types("wait", "good"), 0)
	d.expect(d.types("flyte", "status", "good"), 0, `^Flyte 1: Success\n`, `^Flyte 2: Success\n`)
	d.expect(d.types("wait", "bad-0"), 1)
	d.Eventually("worker 0 has failed", func() error { // its container has before
		return found(d.types("flyte", "status", "bad-0").Stdout, "Flyte 1: RetryableFailure\n  code:    DownstreamSystemError", "(pod bad-0-worker-0 on node trainyard) exited with code 7",
			"Flyte 2: SystemRetryableFailure\n  code:    Interrupted", "pod bad-0-worker-0 has failed; the conditions are not looked at")
	})
	d.expect(d.types("wait", "bad-1"), 1)
	d.Eventually("worker 0 is stopped", func() error {
		return found(d.types("flyte", "status", "bad-1").Stdout, "Flyte 1: RetryableFailure", "Flyte 2: RetryableFailure", "bad-1-worker-1")
	})
}

// submitTask submits the job that Flyte makes of a task of two nodes which run a shell script.
func (d desk) submitTask(t *testing.T, name, script string) {
	t.Helper()
	little := []map[string]string{{"name": "CPU", "value": "1m"}, {"name": "MEMORY", "value": "1Mi"}}
	much := []map[string]string{{"name": "CPU", "value": "1"}, {"name": "MEMORY", "value": "1Gi"}}
	task, err := json.Marshal(map[string]any{
		"type": "pytorch", "taskTypeVersion": 1,
		"custom":    map[string]any{"workerReplicas": map[string]any{"replicas": 2}, "elasticConfig": map[string]any{"minReplicas": 2, "maxReplicas": 2, "nprocPerNode": 1}},
		"container": map[string]any{"image": "none", "command": []string{"sh", "-c", script}, "resources": map[string]any{"requests": little, "limits": much}},
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "task.json"), string(task))
	rendered := finish(d, local.CLI("flyte", "render", "--name", name, "-f", filepath.Join(folder, "task.json")))
	d.expect(rendered, 0)
	write(t, filepath.Join(folder, "job.yaml"), rendered.Stdout)
	d.expect(d.types("submit", "-f", filepath.Join(folder, "job.yaml")), 0)
}
