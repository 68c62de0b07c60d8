package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// mostRunRatio is how long a cold `trainyard run` may take, in times that a bare API server takes to be ready.
const mostRunRatio = 2.5

// BenchmarkColdRun runs a job that prints one line where no cluster is, from the first process to the exit code, in turn with a
// bare kube-apiserver, so that what else the machine does burdens both alike. It tells medians.
func BenchmarkColdRun(b *testing.B) {
	const rounds = 5
	for range b.N {
		var bare, cold []local.Launched
		for range rounds {
			bare = append(bare, local.StartBare(b, 0))
			cold = append(cold, runCold(b))
		}
		bareReady, coldDone := local.Median(bare, local.Launched.Seconds), local.Median(cold, local.Launched.Seconds)
		b.ReportMetric(bareReady, "bare-s")
		b.ReportMetric(coldDone, "run-s")
		b.ReportMetric(coldDone/bareReady, "ratio")
		local.Tell("bare API server and etcd: ready in %.2f s", bareReady)
		local.Tell("cold `trainyard run` of a job that prints one line: done in %.2f s", coldDone)
		local.Tell("done in %.2f times of the bare one (at most %.1f: %s)", coldDone/bareReady, mostRunRatio, local.Met(coldDone/bareReady <= mostRunRatio))
	}
}

func runCold(b *testing.B) local.Launched {
	b.Helper()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{trainyardName, "run", "--data-dir=" + b.TempDir(), "--", "echo", "hello"}, Env: os.Environ()}
	began := time.Now()
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "worker-0 | hello\n") {
		b.Fatalf("%v:\n%s", err, output)
	}
	return local.Launched{Ready: time.Since(began)}
}
