//go:build linux

package recorder

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/kinds/pytorch"
	"github.com/trainyard/trainyard/internal/record"
)

// What the recorder may cost for a hundred pods that print a hundred lines a second together.
const (
	mostCPU    = 0.05 // of a core
	mostMemory = 60.0 // MB
)

// BenchmarkRecorder records ten minutes of a hundred pods that print a line a second each. It steps the clock, so the share of a core is the
// processor time that each second of the clock takes.
func BenchmarkRecorder(b *testing.B) {
	const pods, seconds = 100, 600
	for range b.N {
		dir := b.TempDir()
		logs := filepath.Join(dir, "logs")
		r, err := New(record.Open(filepath.Join(dir, "record")), Sources{LogDir: func(string) string { return logs }})
		if err != nil {
			b.Fatal(err)
		}
		r.jobChanged(pytorch.Kind, demo(func(*kubeflowv1.PyTorchJob) {}), false)
		var files []*os.File
		for i := range pods {
			pod := workerPod("1", corev1.PodRunning)
			pod.UID, pod.Name = types.UID(fmt.Sprint("p", i)), fmt.Sprint("demo-worker-", i)
			path := filepath.Join(logs, fmt.Sprintf("default_%s_%s", pod.Name, pod.UID), "pytorch")
			if err := os.MkdirAll(path, 0o700); err != nil {
				b.Fatal(err)
			}
			file, err := os.Create(filepath.Join(path, "0.log"))
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close() //nolint:errcheck // the benchmark has ended
			files = append(files, file)
			r.podChanged(pod, false)
		}
		var used time.Duration
		now := day
		for second := range seconds {
			for i, file := range files {
				fmt.Fprintf(file, "%s stdout F step %d of pod %d: loss=%f and some more words as a training prints them\n", now.Format(time.RFC3339Nano), second, i, 1/float64(second+1))
			}
			before := processorTime(b)
			for range time.Second / readInterval {
				now = now.Add(readInterval)
				r.step(now)
			}
			used += processorTime(b) - before
		}
		if r.problem != "" {
			b.Fatal(r.problem)
		}
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		share, megabytes := used.Seconds()/seconds, float64(memory.HeapInuse+memory.StackInuse)/1e6
		b.ReportMetric(100*share, "%-of-a-core")
		b.ReportMetric(megabytes, "MB")
		fmt.Printf("\n# %d pods, %d lines a second: %.1f %% of a core (at most %.0f), %.0f MB (at most %.0f)\n", pods, pods, 100*share, 100*mostCPU, megabytes, mostMemory)
		if share > mostCPU || megabytes > mostMemory {
			b.Errorf("the recorder takes %.3f of a core and %.0f MB", share, megabytes)
		}
		runtime.KeepAlive(r)
	}
}

// processorTime is what this process has used of the machine's processors.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
