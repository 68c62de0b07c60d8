package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/pytorch"
)

// User agents, by which requests are counted.
const (
	driver     = "bench-driver"
	limitAgent = "bench-limit"
)

// limit creates the objects of our jobs without an operator: what the API server itself takes.
type limit struct{}

func (limit) name() string   { return "limit" }
func (limit) agent() string  { return limitAgent }
func (limit) isSlow() bool   { return false }
func (limit) recovers() bool { return false }

func (limit) workload() workload { return pytorchJobs }

// start creates the children of each job as soon as it is there, and writes that it runs, and that it has succeeded, when its pods have
// come so far: a client needs no less.
func (limit) start(ctx context.Context, w *world, namespace string, s shape) (func() usage, error) {
	if err := w.define(ctx, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c, err := client.NewWithWatch(w.config(limitAgent), client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		cancel()
		return nil, err
	}
	l := &limiter{client: c, ctx: ctx, s: s, jobs: map[string]*limitedJob{}, slots: make(chan struct{}, inFlight)}
	err = follow(ctx, c, &kubeflowv1.PyTorchJobList{}, namespace, func(e watch.EventType, obj client.Object) {
		if e == watch.Added {
			go l.begin(obj.(*kubeflowv1.PyTorchJob))
		}
	})
	if err == nil {
		err = follow(ctx, c, &corev1.PodList{}, namespace, func(_ watch.EventType, obj client.Object) { l.see(obj.(*corev1.Pod)) })
	}
	return func() usage { cancel(); return usage{} }, err
}

type limiter struct {
	client client.Client
	ctx    context.Context
	s      shape
	slots  chan struct{}
	mu     sync.Mutex
	jobs   map[string]*limitedJob
}

// limitedJob is how many of a job's pods are in each phase.
type limitedJob struct {
	job    *kubeflowv1.PyTorchJob
	phases map[string]corev1.PodPhase // of each pod
	count  map[corev1.PodPhase]int
	told   kubeflowv1.JobConditionType
}

// do sends a request, with inFlight of them under way at most.
func (l *limiter) do(request func() error) {
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	if err := request(); err != nil && l.ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "limit:", err)
	}
}

func (l *limiter) begin(obj *kubeflowv1.PyTorchJob) {
	m := pytorch.Kind.Read(obj)
	l.mu.Lock()
	l.jobs[obj.Name] = &limitedJob{job: obj, phases: map[string]corev1.PodPhase{}, count: map[corev1.PodPhase]int{}}
	l.mu.Unlock()
	for _, child := range m.Job.Children {
		l.do(func() error { return l.client.Create(l.ctx, child.Object) })
	}
	var group sync.WaitGroup
	for _, role := range m.Job.Roles {
		for i := range m.Job.Size(role) {
			group.Go(func() {
				l.do(func() error { return l.client.Create(l.ctx, m.Pod(job.Replica{Role: role.Name, Index: i}, 0)) })
			})
		}
	}
	group.Wait()
}

// see notes a pod's phase, and writes the job's state when all its pods have reached it.
func (l *limiter) see(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.jobs[owner.Name]
	j.count[j.phases[pod.Name]]--
	j.phases[pod.Name] = pod.Status.Phase
	j.count[pod.Status.Phase]++
	state, ends := map[corev1.PodPhase]kubeflowv1.JobConditionType{corev1.PodRunning: kubeflowv1.JobRunning, corev1.PodSucceeded: kubeflowv1.JobSucceeded}[pod.Status.Phase]
	if ends && j.count[pod.Status.Phase] == l.s.sizeOf(owner.Name) && j.told != state {
		j.told = state
		go l.tell(j.job, state)
	}
}

func (l *limiter) tell(obj *kubeflowv1.PyTorchJob, state kubeflowv1.JobConditionType) {
	l.do(func() error {
		changed := obj.DeepCopy()
		changed.Status.Conditions = append(changed.Status.Conditions, kubeflowv1.JobCondition{
			Type: state, Status: corev1.ConditionTrue, Reason: string(state), LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
		return l.client.Status().Patch(l.ctx, changed, client.MergeFrom(obj))
	})
}

// process is an operator in a process of its own.
type process struct {
	label, userAgent, binary string
	args                     []string
	// definitions are the files of the operator's own definitions of kinds, none where it is ours.
	definitions []string
	jobs        workload
	// slow operators run the smallest shape only, and once. Those that fail do not replace a pod that failed.
	slow, fails bool
}

func (p process) name() string   { return p.label }
func (p process) agent() string  { return p.userAgent }
func (p process) isSlow() bool   { return p.slow }
func (p process) recovers() bool { return !p.fails }

func (p process) workload() workload { return p.jobs }

// start runs the operator, and waits until it is ready.
func (p process) start(ctx context.Context, w *world, namespace string, _ shape) (func() usage, error) {
	if err := w.define(ctx, p.definitions); err != nil {
		return nil, err
	}
	if err := w.applyRuntime(ctx); err != nil {
		return nil, err
	}
	probes, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p.binary, append(p.args, "--health-probe-bind-address="+probes, "--namespace="+namespace)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig())
	if os.Getenv("BENCH_LOG") != "" {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (`make bench` builds it): %w", p.binary, err)
	}
	if err := awaitReady(ctx, "http://"+probes+"/readyz"); err != nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("%s: %w", p.label, err)
	}
	return func() usage {
		peak := peakRSS(cmd.Process.Pid)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		return usage{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peakRSS: peak}
	}, nil
}

// peakRSS is the most memory a process has had, in bytes. What the kernel says at its end includes the moment before it executed its
// program, when it shared ours.
func peakRSS(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kilobytes int64
			_, _ = fmt.Sscan(value, &kilobytes)
			return kilobytes << 10
		}
	}
	return 0
}

// freeAddress is one that nobody listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// awaitReady waits until a probe succeeds.
func awaitReady(ctx context.Context, url string) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
	}
	return errors.New("the operator does not become ready; BENCH_LOG=1 shows its log")
}
