package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// What the product is held to. Ratios hold on any machine: a bench fails that misses one by more than noise. The rest is printed.
const (
	mostReadyRatio = 1.5   // of the time a bare API server takes
	mostRunRatio   = 2.5   // the same, for a job that prints one line
	mostMemory     = 450.0 // MB, idle, with the operator
	mostAfterWork  = 1.3   // times its memory when fresh, after jobs came and went
	leastPods      = 20.0  // a second, of 100 that run `true`
	mostNodeMemory = 60.0  // MB, that a further node adds, idle
	mostNodeTime   = 1.0   // s, that a further node adds until the cluster is ready
	mostRecording  = 1.03  // of the time that a run takes without the recorder
)

// noise is how far above its aim a ratio is let pass: two medians of five rounds each are never quite the same again.
const noise = 1.1

// holdTo logs a ratio, and fails the benchmark if it is above its goal by more than noise.
func holdTo(b *testing.B, what string, ratio, most float64) {
	b.Helper()
	local.Report("%s in %.2f times of the bare one's time (at most %.1f: %s)", what, ratio, most, local.Met(ratio <= most))
	if ratio > most*noise {
		b.Errorf("%s in %.2f times of the bare one's time, and at most %.1f are wanted", what, ratio, most)
	}
}

// settling is how long a fresh cluster is left alone before its memory is read.
const settling = 5 * time.Second

// BenchmarkStart starts a bare kube-apiserver with etcd, the whole local cluster, and the same with the operator and its kinds in turn,
// each from nothing in a process of its own, so that what else the machine does burdens all alike. It reports medians.
func BenchmarkStart(b *testing.B) {
	const rounds = 5
	for range b.N {
		var bare, cluster, operator []local.Launched
		for range rounds {
			bare = append(bare, local.StartBare(b, settling))
			cluster = append(cluster, startUp(b, "--without-operator"))
			operator = append(operator, startUp(b))
		}
		bareReady := local.Median(bare, local.Launched.Seconds)
		for _, row := range []struct {
			name string
			all  []local.Launched
		}{{"bare API server and etcd", bare}, {"local cluster", cluster}, {"with operator and kinds", operator}} {
			ready, memory := local.Median(row.all, local.Launched.Seconds), local.Median(row.all, local.Launched.Megabytes)
			name := strings.ReplaceAll(row.name, " ", "-")
			b.ReportMetric(ready, name+"-s")
			b.ReportMetric(memory, name+"-MB")
			local.Report("%-24s  ready in %.2f s, %.2f times the bare one's, and %.0f MB idle", row.name, ready, ready/bareReady, memory)
		}
		ratio, memory := local.Median(cluster, local.Launched.Seconds)/bareReady, local.Median(operator, local.Launched.Megabytes)
		holdTo(b, "local cluster ready", ratio, mostReadyRatio)
		local.Report("with operator idle with %.0f MB (at most %.0f: %s)", memory, mostMemory, local.Met(memory <= mostMemory))
	}
}

// BenchmarkFurtherNodes starts a cluster of one node and one of four in turn. It reports what each of the three further nodes adds.
func BenchmarkFurtherNodes(b *testing.B) {
	const rounds, further = 3, 3
	for range b.N {
		var one, four []local.Launched
		for range rounds {
			one = append(one, startUp(b))
			four = append(four, startUp(b, "--nodes", strconv.Itoa(1+further)))
		}
		seconds := (local.Median(four, local.Launched.Seconds) - local.Median(one, local.Launched.Seconds)) / further
		memory := (local.Median(four, local.Launched.Megabytes) - local.Median(one, local.Launched.Megabytes)) / further
		b.ReportMetric(seconds, "node-s")
		b.ReportMetric(memory, "node-MB")
		local.Report("a further node adds %.2f s (at most %.0f: %s) and %.0f MB (at most %.0f: %s)",
			seconds, mostNodeTime, local.Met(seconds <= mostNodeTime), memory, mostNodeMemory, local.Met(memory <= mostNodeMemory))
	}
}

// BenchmarkMemoryAfterWork lets jobs of two pods come and go, some at a time, until their TTL has deleted all. It compares the memory of the
// cluster at rest with what it had before.
func BenchmarkMemoryAfterWork(b *testing.B) {
	const jobs, together, rest = 250, 10, time.Minute
	for range b.N {
		up := local.StartUp(b, b.TempDir()).Ready()
		w := local.At(b, up.Kubeconfig())
		<-time.After(settling)
		fresh := local.MemoryOf(up.Pid())
		for first := 0; first < jobs; first += together {
			runJobs(w, first, together)
		}
		<-time.After(rest)
		after := local.MemoryOf(up.Pid())
		b.ReportMetric(after/fresh, "ratio")
		local.Report("after %d jobs of two pods the cluster has %.2f times the memory that it had (at most %.1f: %s): %.0f MB, and %.0f MB before",
			jobs, after/fresh, mostAfterWork, local.Met(after/fresh <= mostAfterWork), after/1e6, fresh/1e6)
		up.Signal(syscall.SIGTERM)
		up.Wait()
	}
}

// runJobs creates jobs that do nothing, and waits until they have succeeded and are deleted.
func runJobs(w *local.World, first, n int) {
	w.Helper()
	client := dynamic.NewForConfigOrDie(w.Config).Resource(kubeflowv1.GroupVersion.WithResource("pytorchjobs")).Namespace(w.Namespace)
	role := map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "pytorch", "image": "local", "command": []any{"true"}}},
	}}}
	for i := range n {
		job := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kubeflowv1.GroupVersion.String(), "kind": "PyTorchJob", "metadata": map[string]any{"name": fmt.Sprintf("job-%d", first+i)},
			"spec": map[string]any{"runPolicy": map[string]any{"ttlSecondsAfterFinished": int64(0)}, "pytorchReplicaSpecs": map[string]any{"Master": role, "Worker": role}},
		}}
		if _, err := client.Create(w.Context(), job, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	w.Eventually("the jobs are deleted", func() error {
		left, err := client.List(w.Context(), metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	})
}

func startUp(b *testing.B, args ...string) local.Launched {
	b.Helper()
	began := time.Now()
	up := local.StartUp(b, b.TempDir(), args...).Ready()
	s := local.Launched{Ready: time.Since(began)}
	<-time.After(settling)
	s.Memory = local.MemoryOf(up.Pid())
	up.Signal(syscall.SIGTERM)
	up.Wait()
	return s
}

// BenchmarkColdRun runs a job that prints one line where no cluster is, from the first process to the exit code, in turn with a
// bare kube-apiserver, so that what else the machine does burdens both alike. It reports medians.
func BenchmarkColdRun(b *testing.B) {
	const rounds = 5
	for range b.N {
		var bare, cold []local.Launched
		for range rounds {
			bare = append(bare, local.StartBare(b, 0))
			cold = append(cold, runCold(b, []string{"echo", "hello"}))
		}
		bareReady, coldDone := local.Median(bare, local.Launched.Seconds), local.Median(cold, local.Launched.Seconds)
		b.ReportMetric(bareReady, "bare-s")
		b.ReportMetric(coldDone, "run-s")
		b.ReportMetric(coldDone/bareReady, "ratio")
		local.Report("bare API server and etcd: ready in %.2f s", bareReady)
		local.Report("cold `trainyard run` of a job that prints one line: done in %.2f s", coldDone)
		holdTo(b, "done", coldDone/bareReady, mostRunRatio)
	}
}

// unrecorded in the environment of a cluster of this test binary lets its operator run without the recorder.
const unrecorded = "TRAINYARD_TEST_UNRECORDED"

// BenchmarkRecording runs a job that prints ten thousand lines where no cluster is, with the recorder and without it in turn, so that what else the
// machine does burdens both alike. It reports medians.
func BenchmarkRecording(b *testing.B) {
	const rounds = 11
	for range b.N {
		var with, without []local.Launched
		for i := range 2 * rounds {
			script := []string{"sh", "-c", "seq 10000; echo hello"}
			if i%2 == 0 {
				with = append(with, runCold(b, script))
			} else {
				without = append(without, runCold(b, script, unrecorded+"=1"))
			}
		}
		recorded, bare := local.Median(with, local.Launched.Seconds), local.Median(without, local.Launched.Seconds)
		b.ReportMetric(recorded/bare, "ratio")
		local.Report("`trainyard run` of a job that prints 10,000 lines: %.2f s with the recorder, %.2f s without, %.3f times the time (at most %.2f: %s)",
			recorded, bare, recorded/bare, mostRecording, local.Met(recorded <= bare*mostRecording))
		if recorded > bare*mostRecording*noise {
			b.Errorf("the recorder makes a run take %.3f times the time, and at most %.2f are wanted", recorded/bare, mostRecording)
		}
	}
}

// runCold runs a job whose last line is hello.
func runCold(b *testing.B, script []string, env ...string) local.Launched {
	b.Helper()
	dir := b.TempDir()
	args := append([]string{trainyardName, "run", "--data-dir=" + dir, "--"}, script...)
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: args, Env: append(os.Environ(), env...)}
	began := time.Now()
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "worker-0 | hello\n") {
		b.Fatalf("%v:\n%s", err, output)
	}
	took := time.Since(began)
	if records, _ := filepath.Glob(filepath.Join(dir, "record", "v1", "jobs", "*", "*")); (len(records) == 0) != slices.Contains(env, unrecorded+"=1") {
		b.Fatalf("with %v the records are %v", env, records)
	}
	return local.Launched{Ready: took}
}

// BenchmarkPods runs pods that do nothing to their end.
func BenchmarkPods(b *testing.B) {
	up := local.StartUp(b, b.TempDir()).Ready()
	w, cluster := local.At(b, up.Kubeconfig()), local.Below(up.Pid())[0].Pid
	runPods(w, "warm", 1)
	for _, n := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for round := range b.N {
				const times = 3
				var took []time.Duration
				before := processorTime(cluster)
				for i := range times {
					took = append(took, runPods(w, fmt.Sprintf("n%d-%d-%d", n, round, i), n))
				}
				seconds := local.Median(took, time.Duration.Seconds)
				used := (processorTime(cluster) - before) / times
				b.ReportMetric(float64(n)/seconds, "pods/s")
				b.ReportMetric(used, "cpu-s")
				local.Report("%3d pods run to their end in %.2f s, %.1f a second, with %.2f s of CPU", n, seconds, float64(n)/seconds, used)
				if n == 100 {
					local.Report("100 pods at %.1f a second (at least %.0f: %s)", float64(n)/seconds, leastPods, local.Met(float64(n)/seconds >= leastPods))
				}
			}
		})
	}
	up.Signal(syscall.SIGTERM)
	up.Wait()
}

// runPods creates n pods at once and waits until all have succeeded.
func runPods(w *local.World, prefix string, n int) time.Duration {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), local.Timeout)
	defer cancel()
	pods := w.Client.CoreV1().Pods(w.Namespace)
	succeeded := make(chan string, n)
	factory := informers.NewSharedInformerFactoryWithOptions(w.Client, 0, informers.WithNamespace(w.Namespace))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, new any) {
		was, is := old.(*corev1.Pod), new.(*corev1.Pod)
		if is.Labels["run"] == prefix && is.Status.Phase == corev1.PodSucceeded && was.Status.Phase != corev1.PodSucceeded {
			succeeded <- is.Name
		}
	}})
	if err != nil {
		w.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	began := time.Now()
	var creating sync.WaitGroup
	for i := range n {
		pod := local.Pod(fmt.Sprintf("%s-%d", prefix, i), "")
		pod.Labels = map[string]string{"run": prefix}
		pod.Spec.Containers[0].Command = []string{"true"}
		creating.Go(func() {
			if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				w.Error(err)
			}
		})
	}
	for done := range n {
		select {
		case <-succeeded:
		case <-ctx.Done():
			w.Fatalf("%d of %d pods have succeeded in %v", done, n, time.Since(began))
		}
	}
	took := time.Since(began)
	creating.Wait()
	now := int64(0)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: "run=" + prefix}); err != nil {
		w.Error(err)
	}
	return took
}

// processorTime is the time in seconds that a process and what it has waited for have used of the machine's CPUs.
func processorTime(pid int) float64 {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	sum := 0.0
	for _, field := range fields[11:15] { // user and system time, its own and of its children, in 1/100 s
		ticks, _ := strconv.ParseFloat(field, 64)
		sum += ticks / 100
	}
	return sum
}
