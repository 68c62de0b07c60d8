package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/flyte"
)

// follow shows every version of a job that was stored after it was submitted, until visit has seen enough; the last may be
// that of its deletion.
func (j *training) follow(submitted client.Object, visit func(obj client.Object, gone bool) bool) {
	j.Helper()
	watcher, err := client.NewWithWatch(j.Config, client.Options{Scheme: j.client.Scheme()})
	if err != nil {
		j.Fatal(err)
	}
	var list client.ObjectList = &kubeflowv1.PyTorchJobList{}
	if _, ok := submitted.(*kubeflowv1.TFJob); ok {
		list = &kubeflowv1.TFJobList{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // says nothing of speed: it would not end otherwise
	defer cancel()
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: submitted.GetResourceVersion()}}
	events, err := watcher.Watch(ctx, list, from, client.InNamespace(j.Namespace), client.MatchingFields{"metadata.name": j.name})
	if err != nil {
		j.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		obj, ok := event.Object.(client.Object)
		if !ok {
			j.Fatalf("the watch of %s says %+v", j.name, event.Object)
		}
		if visit(obj, event.Type == watch.Deleted) {
			return
		}
	}
	j.Fatalf("nothing more is heard of %s:\n%s", j.name, describe(j.status()))
}

// step is what somebody does to a job once its status is as when wants it.
type step struct {
	when func(kubeflowv1.JobStatus) bool
	do   func(j *training, gate string)
}

func runs(s kubeflowv1.JobStatus) bool    { return newest(s).Type == kubeflowv1.JobRunning }
func waits(s kubeflowv1.JobStatus) bool   { return newest(s).Type == kubeflowv1.JobSuspended }
func retried(s kubeflowv1.JobStatus) bool { return s.Retries == 1 }

func opens(j *training, gate string)     { open(j.t, gate) }
func opensLast(j *training, gate string) { open(j.t, gate+".last") }
func admits(j *training, _ string)       { j.edit(suspended(false)) }
func preempts(j *training, _ string)     { j.edit(suspended(true)) }

// At every moment of a job's life both Flytes read from it what is true, also if they look long after its creation.
func TestWhatFlyteReadsInEveryMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const held = `until test -f GATE; do sleep 0.1; done; `
	two := elastic(flyte.Nodes(2), nil)
	policy := func(p flyte.RunPolicy) flyte.Config { return elastic(flyte.Nodes(2), &p) }
	for i, c := range []struct {
		sentence  string
		config    flyte.Config
		dialect   flyte.Dialect
		restarts  bool // by annotation
		suspended bool // by Kueue, whose webhook sees a job before anybody else
		script    string
		steps     []step
		phases    []flyte.Phase // Running is left out of those of a job that may be over before it is seen to run
		says      []string      // to the user, at last
	}{
		{
			sentence: "it succeeds", config: two, dialect: flyte.Flyte2, script: held,
			steps:  []step{{runs, opens}},
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseSuccess},
		},
		{
			sentence: "it is over at once", config: two, dialect: flyte.Flyte2, script: "true",
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseSuccess},
		},
		{
			sentence: "a worker fails, the other is told to stop", config: two, dialect: flyte.Flyte2,
			script: `case $HOSTNAME in *-1) ` + held + `echo no such dataset; exit 7;; esac; trap 'exit 143' TERM; while true; do sleep 0.1; done`,
			steps:  []step{{runs, opens}},
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseRetryable},
			says:   []string{"PyTorchJobFailed - ", "Worker 1", "pod JOB-worker-1", "exited with code 7", "restartPolicy Never", "no such dataset"},
		},
		{
			sentence: "its deadline passes", config: policy(flyte.RunPolicy{CleanPodPolicy: "all", ActiveDeadlineSeconds: new(int32(2))}), dialect: flyte.Flyte2, script: "sleep 600",
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRetryable},
			says:   []string{"activeDeadlineSeconds 2"},
		},
		{
			sentence: "Kueue holds it back, lets it in, takes it out and lets it in again", config: two, dialect: flyte.Flyte2, suspended: true, script: held,
			steps: []step{
				{waits, admits}, {runs, preempts}, {waits, admits}, {runs, opens},
			},
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseSuccess},
		},
		{
			sentence: "a worker is restarted, as the annotation wants", config: policy(flyte.RunPolicy{CleanPodPolicy: "Running", BackoffLimit: new(int32(4))}),
			dialect: flyte.Flyte2, restarts: true,
			script: `case $HOSTNAME in *-1) test -f GATE.ran || { touch GATE.ran; ` + held + `exit 7; };; esac; until test -f GATE.last; do sleep 0.1; done`,
			steps:  []step{{runs, opens}, {retried, opensLast}},
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseSuccess},
		},
		{
			sentence: "its backoff limit is used up", config: policy(flyte.RunPolicy{CleanPodPolicy: "Running", BackoffLimit: new(int32(1))}),
			dialect: flyte.Flyte1, restarts: true,
			script: `case $HOSTNAME in *-1) ` + held + `exit 7;; esac; sleep 600`,
			steps:  []step{{runs, opens}},
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseRetryable},
			says:   []string{"pod JOB-worker-1", "exited with code 7", "backoffLimit 1"},
		},
		{
			sentence: "it has a Master alone", config: flyte.PyTorch{}, dialect: flyte.Flyte1, script: held,
			steps:  []step{{runs, opens}},
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseSuccess},
		},
		{
			sentence: "it is a TFJob", config: flyte.TensorFlow{PS: flyte.Group{Replicas: 1}, Worker: flyte.Group{Replicas: 1}}, dialect: flyte.Flyte1,
			script: `case $HOSTNAME in *-ps-*) sleep 600;; esac; ` + held,
			steps:  []step{{runs, opens}},
			phases: []flyte.Phase{flyte.PhaseQueued, flyte.PhaseRunning, flyte.PhaseSuccess},
		},
	} {
		w.row(c.sentence, func(w *world) {
			gate := filepath.Join(w.t.TempDir(), "gate")
			task := w.taskOf(c.config, strings.ReplaceAll(c.script, "GATE", gate))
			if c.restarts {
				task.Annotations = map[string]string{kubeflowv1.AnnotationRestartPolicy: "OnFailure"} // Flyte 1 takes these
				task.Pod.Template.Annotations = task.Annotations                                      // Flyte 2 takes those
			}
			job := w.rendered(task, c.dialect, fmt.Sprintf("row-%d", i))
			if c.suspended {
				suspended(true)(job)
			}
			j, steps := w.submit(job), c.steps
			phases := map[flyte.Dialect][]flyte.Phase{}
			var last client.Object
			j.follow(job, func(obj client.Object, _ bool) bool {
				last = obj
				s := statusOf(obj)
				w.orderly(s)
				w.isFirm(s)
				for _, dialect := range []flyte.Dialect{flyte.Flyte1, flyte.Flyte2} {
					phases[dialect] = append(phases[dialect], readLate(obj, nil, dialect).Phase)
				}
				if len(steps) > 0 && steps[0].when(s) {
					steps[0].do(j, gate)
					steps = steps[1:]
				}
				return s.CompletionTime != nil
			})
			for _, dialect := range []flyte.Dialect{flyte.Flyte1, flyte.Flyte2} {
				seen := slices.Compact(phases[dialect])
				if !slices.Contains(c.phases, flyte.PhaseRunning) {
					seen = slices.DeleteFunc(seen, func(p flyte.Phase) bool { return p == flyte.PhaseRunning })
				}
				if !slices.Equal(seen, c.phases) {
					w.Errorf("Flyte %s reads %v, want %v", dialect, seen, c.phases)
				}
				told := readLate(last, nil, dialect).Message
				for _, text := range c.says {
					if text = strings.ReplaceAll(text, "JOB", j.name); !strings.Contains(told, text) {
						w.Errorf("Flyte %s tells its user %q, which lacks %q", dialect, told, text)
					}
				}
			}
			if len(steps) > 0 {
				w.Errorf("%d steps were not taken", len(steps))
			}
			j.endsForFlyte(c.phases[len(c.phases)-1])
		})
	}
}

// readLate is what Flyte reads from a version of a job that the operator has touched, two hours after its creation, or else
// at once.
func readLate(obj client.Object, pods []corev1.Pod, dialect flyte.Dialect) flyte.Reading {
	now := obj.GetCreationTimestamp().Time
	if statusOf(obj).Conditions != nil {
		now = now.Add(2 * time.Hour)
	}
	return flyte.ReadPhase(obj, pods, now, dialect)
}

// isFirm checks what Flyte relies on in conditions beside their order: from the first on there is one that holds, an end is
// one that holds, and then the job has ended and no longer runs.
func (w *world) isFirm(s kubeflowv1.JobStatus) {
	w.Helper()
	if s.Conditions == nil {
		return
	}
	if condition(s, kubeflowv1.JobCreated).Status != corev1.ConditionTrue {
		w.Errorf("it is not Created:\n%s", describe(s))
	}
	ended := false
	for _, verdict := range []kubeflowv1.JobConditionType{kubeflowv1.JobSucceeded, kubeflowv1.JobFailed} {
		c := condition(s, verdict)
		if c.Type != "" && c.Status != corev1.ConditionTrue {
			w.Errorf("%s is %s", verdict, c.Status)
		}
		ended = ended || c.Type != ""
	}
	if ended != (s.CompletionTime != nil) || ended && condition(s, kubeflowv1.JobRunning).Status == corev1.ConditionTrue {
		w.Errorf("it ended at %v:\n%s", s.CompletionTime, describe(s))
	}
}

// endsForFlyte checks what is there when all is over: Flyte 2, which looks at the pod of worker 0 first, comes to the same
// end; what the survivors of a failure did is not told; and there were few events, none about what Flyte always asks for.
func (j *training) endsForFlyte(end flyte.Phase) {
	j.Helper()
	j.comesToRest()
	j.Eventually("Flyte 2 reads "+string(end)+" from job and pods", func() error {
		obj, err := j.get()
		if err != nil {
			return err
		}
		var pods []corev1.Pod
		for _, pod := range j.pods() {
			pods = append(pods, *pod)
		}
		if r := readLate(obj, pods, flyte.Flyte2); r.Phase != end {
			return fmt.Errorf("it reads %+v", r)
		}
		return nil
	})
	if s := j.status(); s.LastFailure != nil && s.LastFailure.Replica != "worker-1" {
		j.Errorf("the last failure is %+v", s.LastFailure)
	}
	kind := "PyTorchJob"
	if _, ok := j.empty.(*kubeflowv1.TFJob); ok {
		kind = "TFJob"
	}
	for _, event := range j.events() {
		if warning, yes := strings.CutPrefix(event, "Warning "); yes && warning != kind+"Failed" && warning != kind+"Restarting" {
			j.Errorf("there is an event %q", event)
		}
	}
	if n := len(j.events()); n > 10 {
		j.Errorf("there are %d events: %v", n, j.events())
	}
}

// However soon a job is to go, it stays until Flyte, which looks every ten seconds, has seen its end.
func TestAJobStaysUntilFlyteHasSeenItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.rendered(w.taskOf(elastic(flyte.Nodes(2), &flyte.RunPolicy{CleanPodPolicy: "all", TTLSecondsAfterFinished: new(int32(1))}), "true"), flyte.Flyte2, "brief")
	j := w.submit(job)
	j.goesAfter(job, 30*time.Second)
}

// goesAfter follows a job until it has succeeded and is deleted, and checks that Flyte could read its end all the time, and
// that it was kept for as long as it should be.
func (j *training) goesAfter(job client.Object, kept time.Duration) kubeflowv1.JobStatus {
	j.Helper()
	var end kubeflowv1.JobStatus
	j.follow(job, func(obj client.Object, gone bool) bool {
		end = statusOf(obj)
		if r := readLate(obj, nil, flyte.Flyte2); end.CompletionTime != nil && r.Phase != flyte.PhaseSuccess {
			j.Errorf("Flyte reads %+v", r)
		}
		return gone
	})
	if end.CompletionTime == nil {
		j.Fatalf("the job went before it ended:\n%s", describe(end))
	}
	late := j.deletion("pytorchjobs", j.name).Sub(end.CompletionTime.Add(kept))
	if late < 0 {
		j.Errorf("it was deleted %s too early", -late)
	}
	j.Logf("it was deleted %s after it was due", late)
	return end
}

// Flyte 2 deletes a job whose worker 0 has failed, and makes it anew under its name at once. The job is gone when the answer to
// the deletion comes; what it leaves behind is neither taken over by the new one nor counted against it.
func TestFlyteMakesAJobAnewUnderItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.rendered(w.taskOf(elastic(flyte.Nodes(2), nil), `case $HOSTNAME in *-0) exit 7;; esac; sleep 600`), flyte.Flyte2, "again")
	j := w.submit(first)
	j.becomes(kubeflowv1.JobFailed)
	w.UntilPhase("again-worker-0", corev1.PodFailed)
	old, err := j.get()
	if err != nil || len(old.GetFinalizers()) > 0 {
		t.Fatalf("the job has the finalizers %v (%v)", old.GetFinalizers(), err)
	}
	if err := w.client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := j.get(); !apierrors.IsNotFound(err) {
		t.Errorf("the job is still there: %v", err)
	}
	gate := filepath.Join(t.TempDir(), "gate")
	second := w.rendered(w.taskOf(elastic(flyte.Nodes(2), nil), `until test -f `+gate+`; do sleep 0.1; done`), flyte.Flyte2, "again")
	j = w.submit(second)
	s := j.becomes(kubeflowv1.JobRunning)
	for name, pod := range j.pods() {
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != second.GetUID() {
			t.Errorf("pod %s belongs to %v", name, owner)
		}
	}
	if s.Restarts != 0 || s.LastFailure != nil {
		t.Errorf("the status is\n%s", describe(s))
	}
	open(t, gate)
	j.becomes(kubeflowv1.JobSucceeded)
}

// A task that is terminated in Flyte leaves no worker behind.
func TestATerminatedJobOfFlyteLeavesNoPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(w.rendered(w.taskOf(elastic(flyte.Nodes(3), nil), "sleep 600"), flyte.Flyte2, "terminated"))
	j.becomes(kubeflowv1.JobRunning)
	w.Kubectl("delete", "pytorchjob", "terminated")
	w.Eventually("its pods are gone", func() error {
		if n := len(j.pods()); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

// Without a run policy pods that are done stay, for Flyte's log links, and none runs on with its GPU. A worker that is done
// does not cut off another that still uploads its outputs.
func TestWhatAJobOfFlyteLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.row("Elastic: one worker takes longer", func(w *world) {
		gate := filepath.Join(w.t.TempDir(), "gate")
		task := w.taskOf(elastic(flyte.Nodes(2), nil), `until test -f `+gate+`-${HOSTNAME#uploads-}; do sleep 0.1; done`)
		j := w.submit(w.rendered(task, flyte.Flyte2, "uploads"))
		j.becomes(kubeflowv1.JobRunning)
		open(w.t, gate+"-worker-0")
		j.until("knows that worker 0 is done", func(s kubeflowv1.JobStatus) bool {
			return s.ReplicaStatuses["Worker"] != nil && s.ReplicaStatuses["Worker"].Succeeded == 1
		})
		if s := j.status(); s.CompletionTime != nil || j.pods()["worker-1"].DeletionTimestamp != nil {
			w.Errorf("the other was not waited for:\n%s", describe(s))
		}
		open(w.t, gate+"-worker-1")
		j.becomes(kubeflowv1.JobSucceeded)
		j.leaves(left{"worker-0": corev1.PodSucceeded, "worker-1": corev1.PodSucceeded})
	})
	w.row("PyTorch: a worker runs on after the Master's end", func(w *world) {
		gate := filepath.Join(w.t.TempDir(), "gate")
		task := w.taskOf(flyte.PyTorch{Worker: flyte.Group{Replicas: 1}}, `case $HOSTNAME in *-worker-*) sleep 600;; esac; until test -f `+gate+`; do sleep 0.1; done`)
		j := w.submit(w.rendered(task, flyte.Flyte1, "runs-on"))
		j.becomes(kubeflowv1.JobRunning)
		open(w.t, gate)
		j.becomes(kubeflowv1.JobSucceeded)
		j.leaves(left{"master-0": corev1.PodSucceeded})
	})
}

// The task of examples/flyte, which is Elastic(nnodes=2, nproc_per_node=2) with a whole run policy, trains with torch in four
// processes, is cleaned up, and is deleted 100 s after its end.
func TestTheFlyteExampleTrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := exampleTask(t)
	output := t.TempDir()
	container := &task.Pod.Template.Spec.Containers[0]
	container.Command = []string{"sh", "-c", fmt.Sprintf(`exec "$@" > %s/$HOSTNAME 2>&1`, output), "sh"}
	var err error
	if container.WorkingDir, err = filepath.Abs("../.."); err != nil {
		t.Fatal(err)
	}
	job := w.rendered(task, flyte.Flyte2, "run-a0-0")
	j := w.submit(job)
	end := j.goesAfter(job, 100*time.Second)
	if newest(end).Type != kubeflowv1.JobSucceeded || end.Restarts != 0 {
		t.Errorf("the status is\n%s", describe(end))
	}
	var said string
	for _, worker := range []string{"run-a0-0-worker-0", "run-a0-0-worker-1"} {
		w.deletion("pods", worker)
		text, err := os.ReadFile(filepath.Join(output, worker))
		if err != nil {
			t.Fatal(err)
		}
		said += string(text)
	}
	for rank := range 4 {
		if want := fmt.Sprintf("rank %d of 4, loss 0.000", rank); strings.Count(said, want) != 1 {
			t.Errorf("%q is not said once:\n%s", want, said)
		}
	}
	if strings.Count(said, "the task returns") != 1 {
		t.Errorf("there is not one result:\n%s", said)
	}
}

// exampleTask is the task of examples/flyte, whose configuration is the one of Flyte's own test.
func exampleTask(t *testing.T) flyte.Task {
	t.Helper()
	data, err := os.ReadFile("../../examples/flyte/task.json")
	if err != nil {
		t.Fatal(err)
	}
	task, err := flyte.DecodeTask(data)
	if err != nil {
		t.Fatal(err)
	}
	founding := flyte.NewElastic(flyte.Nodes(2), 2)
	founding.RunPolicy = &flyte.RunPolicy{
		CleanPodPolicy: "all", BackoffLimit: new(int32(4)), TTLSecondsAfterFinished: new(int32(100)), ActiveDeadlineSeconds: new(int32(200)),
	}
	config, lost, err := task.Custom.Config()
	if err != nil {
		t.Fatal(err)
	}
	have, _ := json.Marshal(config)
	want, _ := json.Marshal(founding)
	if string(have) != string(want) || len(lost) > 0 {
		t.Fatalf("the example is %s, want %s; lost is %v", have, want, lost)
	}
	return task
}
