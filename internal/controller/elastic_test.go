package controller_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// elasticRun is the example of that name, which trains until it is stopped.
type elasticRun struct {
	*training
	folder string // of its checkpoint
}

// made is a step of the training, and how many workers made it.
type made struct{ number, workers int }

func (w *world) elastic(changes ...string) *elasticRun {
	w.Helper()
	folder := w.t.TempDir()
	w.example("elastic", "pytorchjob.yaml", append([]string{
		"/tmp/elastic", folder, `{name: STEPS, value: "100"}`, `{name: STEPS, value: "1000000"}`,
	}, changes...)...)
	e := &elasticRun{training: &training{world: w, name: "elastic", empty: &kubeflowv1.PyTorchJob{}}}
	obj, err := e.get()
	if err != nil {
		w.Fatal(err)
	}
	e.folder = filepath.Join(folder, string(obj.GetUID()))
	return e
}

// steps are those made so far.
func (e *elasticRun) steps() []made {
	e.Helper()
	text, err := os.ReadFile(filepath.Join(e.folder, "steps.txt"))
	if err != nil && !os.IsNotExist(err) {
		e.Fatal(err)
	}
	var steps []made
	for line := range strings.Lines(string(text)) {
		var s made
		if _, err := fmt.Sscan(line, &s.number, &s.workers); err != nil {
			e.Fatalf("steps.txt says %q: %v", line, err)
		}
		steps = append(steps, s)
	}
	return steps
}

// trains waits for a step that is made from now on, by as many workers as wanted.
func (e *elasticRun) trains(by string, wanted func(workers int) bool) {
	e.Helper()
	before := len(e.steps())
	e.Eventually("a step by "+by, func() error {
		steps := e.steps()
		for _, s := range steps[before:] {
			if wanted(s.workers) {
				return nil
			}
		}
		return fmt.Errorf("there are %v, the status is\n%s", steps[before:], describe(e.status()))
	})
}

func (e *elasticRun) trainsWith(workers int) {
	e.Helper()
	e.trains(fmt.Sprintf("%d workers", workers), func(n int) bool { return n == workers })
}

// has waits until the job has as many pods as wanted.
func (e *elasticRun) has(what string, wanted func(pods int) bool) {
	e.Helper()
	e.Eventually("the job has "+what, func() error {
		if n := len(e.pods()); !wanted(n) {
			return fmt.Errorf("it has %d; the autoscaler is\n%s", n, e.Try("", "describe", "hpa", e.name).Stdout)
		}
		return nil
	})
}

// kill ends everything in a worker's container as suddenly as can be. The command may die with the container it ends.
func (e *elasticRun) kill(worker string) {
	e.Helper()
	e.Try("", "exec", e.name+"-"+worker, "--", "pkill", "-KILL", "-f", "train.py")
}

// put makes a file beside the checkpoint, by which the training is told something.
func (e *elasticRun) put(name string) {
	e.Helper()
	open(e.t, filepath.Join(e.folder, name))
}

// succeeds stops the training, sees it succeed and sees its autoscaler gone.
func (e *elasticRun) succeeds() kubeflowv1.JobStatus {
	e.Helper()
	e.put("stop")
	s := e.becomes(kubeflowv1.JobSucceeded)
	e.Eventually("the autoscaler is gone", func() error {
		_, err := e.Client.AutoscalingV2().HorizontalPodAutoscalers(e.Namespace).Get(context.Background(), e.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, or: %w", err)
	})
	e.comesToRest()
	return s
}

// A worker killed in the middle of a step may have told of it and not saved it: then it is made again. None is left out.
func (e *elasticRun) lostNoStep() {
	e.Helper()
	last := -1
	for _, s := range e.steps() {
		if s.number != last && s.number != last+1 {
			e.Errorf("step %d comes after step %d", s.number, last)
		}
		last = s.number
	}
}

// Real torchrun with one worker, three and two, of which one is lost at each size.
func TestAnElasticTrainingIsScaledAndLosesWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.elastic(`{name: SECONDS_PER_STEP, value: "1"}`, `{name: SECONDS_PER_STEP, value: "0.2"}`)
	e.trainsWith(1)
	e.kill("worker-0") // which holds the rendezvous: the attempt ends with it
	e.until("is in another attempt", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 && s.Retries == 1 })
	e.trainsWith(1)

	w.Kubectl("scale", "pytorchjob", "elastic", "--replicas=3")
	e.trainsWith(3)
	before := e.uids()
	e.kill("worker-2")
	e.until("is charged for worker-2", func(s kubeflowv1.JobStatus) bool { return s.Retries == 2 })
	w.Await("of 3, from step", "logs", "elastic-worker-2")
	e.trainsWith(3)

	w.Kubectl("scale", "pytorchjob", "elastic", "--replicas=2")
	e.trainsWith(2)
	for _, worker := range []string{"worker-0", "worker-1"} {
		if now := e.uids()[worker]; now != before[worker] {
			t.Errorf("the pod of %s is %s, it was %s", worker, now, before[worker])
		}
	}
	e.kill("worker-1")
	e.until("is charged for worker-1", func(s kubeflowv1.JobStatus) bool { return s.Retries == 3 })
	w.Await("of 2, from step", "logs", "elastic-worker-1")
	e.trainsWith(2)
	w.Kubectl("delete", "pod", "elastic-worker-0", "--wait=false") // the rendezvous again, and nobody's fault
	e.until("is in another attempt", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 2 })
	e.trainsWith(2)

	if s := e.succeeds(); s.Retries != 3 || s.Disruptions != 1 || s.Attempt != 2 {
		t.Errorf("the status is\n%s", describe(s))
	}
	e.lostNoStep()
}

// The autoscaler alone changes the number, by how busy the workers are.
func TestAnElasticTrainingFollowsItsAutoscaler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.elastic("    # metrics:", "    metrics:", "    # - {type: Resource", "    - {type: Resource")
	e.trains("anyone", func(int) bool { return true })
	e.put("busy")
	e.has("3 workers", func(n int) bool { return n == 3 })
	e.trainsWith(3)
	if err := os.Remove(filepath.Join(e.folder, "busy")); err != nil {
		t.Fatal(err)
	}
	fewer := func(n int) bool { return n < 3 }
	e.has("fewer than 3 workers", fewer)
	e.trains("fewer than 3 workers", fewer)
	if s := e.succeeds(); s.Retries+s.Disruptions != 0 || s.Attempt != 0 {
		t.Errorf("the status is\n%s", describe(s))
	}
	e.lostNoStep()
}
