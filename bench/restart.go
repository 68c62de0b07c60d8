package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// restart is what an operator does that starts beside many jobs.
type restart struct {
	finished, running int
	ready, looked     time.Duration // from the start of the process: until it says that it is ready, until it has looked at every job
	writes            int
	usage
}

func (r restart) String() string {
	return fmt.Sprintf("%d finished and %d running jobs: ready after %.1f s, every job looked at after %.1f s, %d writes, %.1f s of CPU, %.0f MB at most",
		r.finished, r.running, r.ready.Seconds(), r.looked.Seconds(), r.writes, r.cpu.Seconds(), float64(r.peakRSS)/1e6)
}

// measureRestart starts an operator beside finished jobs and jobs that another process of it has started.
func (w *world) measureRestart(ctx context.Context, p process, finished, running int) (r restart, err error) {
	const namespace = "restart"
	r.finished, r.running = finished, running
	if err := w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return r, err
	}
	if err := w.runJobs(ctx, p, namespace, running); err != nil {
		return r, err
	}
	err = inParallel(finished, func(n int) error { return w.createFinished(ctx, namespace, n) })
	if err != nil {
		return r, err
	}
	before := w.settledRequests(p.agent(), namespace)
	address, err := freeAddress()
	if err != nil {
		return r, err
	}
	p.args = []string{"--metrics-bind-address=" + address}
	began := time.Now()
	stop, err := p.start(ctx, w, namespace, shape{})
	if err != nil {
		return r, err
	}
	r.ready = time.Since(began)
	for reconciled(ctx, address) < finished+running {
		time.Sleep(50 * time.Millisecond)
	}
	r.looked = time.Since(began)
	r.writes = w.settledRequests(p.agent(), namespace).since(before).total()
	r.usage = stop()
	return r, w.clear(ctx, namespace)
}

// runJobs lets an operator start jobs of two pods, and ends it when they run.
func (w *world) runJobs(ctx context.Context, p process, namespace string, jobs int) error {
	s := shape{jobs: jobs, pods: 2}
	watching, end := context.WithCancel(ctx)
	defer end()
	stop, err := p.start(ctx, w, namespace, s)
	if err != nil {
		return err
	}
	defer stop()
	progress, err := w.followProgress(watching, namespace, s, pytorchJobs)
	if err != nil {
		return err
	}
	if _, err := startKubelet(watching, w, namespace); err != nil {
		return err
	}
	if err := inParallel(jobs, func(n int) error { return w.client.Create(ctx, s.job(namespace, n)) }); err != nil {
		return err
	}
	if _, err = progress.allRunning.after(time.Now()); err == nil {
		w.settledRequests(p.agent(), namespace)
	}
	return err
}

// createFinished creates a job that has succeeded.
func (w *world) createFinished(ctx context.Context, namespace string, n int) error {
	j := shape{jobs: 1, pods: 2}.job(namespace, n)
	j.Name = fmt.Sprintf("finished-%d", n)
	if err := w.client.Create(ctx, j); err != nil {
		return err
	}
	was, now := j.DeepCopy(), metav1.Now()
	j.Status.StartTime, j.Status.CompletionTime = &now, &now
	for _, state := range []kubeflowv1.JobConditionType{kubeflowv1.JobCreated, kubeflowv1.JobSucceeded} {
		j.Status.Conditions = append(j.Status.Conditions, kubeflowv1.JobCondition{
			Type: state, Status: corev1.ConditionTrue, Reason: "PyTorchJob" + string(state), LastTransitionTime: now, LastUpdateTime: now,
		})
	}
	return w.client.Status().Patch(ctx, j, client.MergeFrom(was))
}

// reconciled is how many passes an operator has made, by its metrics.
func reconciled(ctx context.Context, address string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	total := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "controller_runtime_reconcile_total{") {
			continue
		}
		var n float64
		_, value, _ := strings.Cut(lines.Text(), "} ")
		_, _ = fmt.Sscan(value, &n)
		total += n
	}
	return int(total)
}
