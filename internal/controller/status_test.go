package controller_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// The conditions of a job that ran, restarted and succeeded: those that hold are last, the newest at the end, their times
// a second apart at least, and one of them is the verdict.
func TestConditionsTellTheStoryInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := filepath.Join(t.TempDir(), "attempt-")
	script := `until test -f ` + gate + `$TRAINYARD_ATTEMPT; do sleep 0.1; done; test $TRAINYARD_ATTEMPT = 1 && exit 0; test $RANK = 1 && exit 1; sleep 600`
	var states []string
	j, lived := w.lives(gang(1, script), func(s kubeflowv1.JobStatus) {
		w.orderly(s)
		states = append(states, string(newest(s).Type))
		if newest(s).Type == kubeflowv1.JobRunning {
			open(t, gate+strconv.Itoa(int(s.Attempt)))
		}
	})
	if got, want := slices.Compact(states), []string{"Created", "Running", "Restarting", "Running", "Succeeded"}; !slices.Equal(got, want) {
		t.Errorf("it was %q, want %q", got, want)
	}
	s := lived[len(lived)-1]
	if c := condition(s, kubeflowv1.JobRunning); c.Status != corev1.ConditionFalse || c.Reason != "PyTorchJobRunning" {
		t.Errorf("the status is\n%s", describe(s))
	}
	if c := condition(s, kubeflowv1.JobSucceeded); c.Reason != "PyTorchJobSucceeded" || condition(s, kubeflowv1.JobRestarting).Type != "" {
		t.Errorf("the status is\n%s", describe(s))
	}
	j.Eventually("what is no routine is told once", func() error {
		told := j.events()
		slices.Sort(told)
		told = slices.DeleteFunc(told, func(e string) bool { return e == "Normal PyTorchJobCleaned" })
		want := []string{"Normal ExitedWithCode", "Normal PyTorchJobRunning", "Normal PyTorchJobSucceeded", "Warning PyTorchJobRestarting"}
		if !slices.Equal(told, want) {
			return fmt.Errorf("told was %q", told)
		}
		return nil
	})
	j.toldToAll()
}

// toldToAll checks that clients of both generations of the events API can read what a job was told.
func (j *training) toldToAll() {
	j.Helper()
	of := metav1.ListOptions{FieldSelector: "involvedObject.name=" + j.name + ",reportingComponent=pytorchjob-controller"}
	old, err := j.Client.CoreV1().Events(j.Namespace).List(j.Context(), of)
	if err != nil || len(old.Items) == 0 {
		j.Fatalf("%d events (%v)", len(old.Items), err)
	}
	for _, e := range old.Items {
		if e.FirstTimestamp.IsZero() || e.LastTimestamp.IsZero() || e.Count != 1 || e.Source.Component != "pytorchjob-controller" {
			j.Errorf("an old client reads %+v", e)
		}
	}
	recent, err := j.Client.EventsV1().Events(j.Namespace).List(j.Context(), metav1.ListOptions{FieldSelector: "regarding.name=" + j.name + ",reportingController=pytorchjob-controller"})
	if err != nil || len(recent.Items) < len(old.Items) { // another may have come meanwhile
		j.Fatalf("%d events by the newer API, %d by the older (%v)", len(recent.Items), len(old.Items), err)
	}
	for _, e := range recent.Items {
		if e.EventTime.IsZero() || e.ReportingController != "pytorchjob-controller" || e.ReportingInstance == "" || e.Action == "" || e.Regarding.UID == "" {
			j.Errorf("a new client reads %+v", e)
		}
	}
}

// orderly checks what every reader of conditions relies on.
func (w *world) orderly(s kubeflowv1.JobStatus) {
	w.Helper()
	holds := false
	for i, c := range s.Conditions {
		if c.Type == kubeflowv1.JobCreated && i > 0 && newest(s).Type != kubeflowv1.JobCreated {
			w.Errorf("Created is not first:\n%s", describe(s))
		}
		if holds && s.Conditions[i-1].Type != kubeflowv1.JobCreated && c.Status != corev1.ConditionTrue {
			w.Errorf("a condition that does not hold comes after one that does:\n%s", describe(s))
		}
		holds = c.Status == corev1.ConditionTrue
		for _, other := range s.Conditions[:i] {
			if apart := c.LastTransitionTime.Sub(other.LastTransitionTime.Time).Abs(); apart < time.Second {
				w.Errorf("%s and %s are %s apart", other.Type, c.Type, apart)
			}
		}
	}
}

// Running means that every replica trains: one that cannot be placed keeps the job Created, and the job says so.
func TestAJobRunsWhenAllOfItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(2, `sleep 600`, func(pj *kubeflowv1.PyTorchJob) {
		pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	}))
	s := j.until("shows its Master", func(s kubeflowv1.JobStatus) bool { return s.Ready == "1/3" })
	if newest(s).Type != kubeflowv1.JobCreated || s.ReplicaStatuses["Master"].Active != 1 || s.ReplicaStatuses["Worker"].Active != 0 {
		t.Errorf("the status is\n%s", describe(s))
	}
	for _, pod := range []string{"demo-worker-0", "demo-worker-1"} {
		w.Kubectl("patch", "pod", pod, "-p", `{"spec":{"schedulingGates":null}}`)
	}
	s = j.becomes(kubeflowv1.JobRunning)
	if got := s.ReplicaStatuses["Worker"]; s.Ready != "3/3" || got.Active != 2 || !strings.Contains(got.Selector, "replica-type=worker") {
		t.Errorf("the status is\n%s", describe(s))
	}
	want := regexp.MustCompile(`NAME +STATE +READY +RESTARTS +AGE +MESSAGE\s+demo +Running +3/3 +0 `)
	if got := w.Kubectl("get", "pytorchjobs", "-o", "wide"); !want.MatchString(got) {
		t.Errorf("kubectl shows:\n%s", got)
	}
	if obj, err := j.get(); err != nil || s.ObservedGeneration != obj.GetGeneration() {
		t.Errorf("generation %d was observed, there is %d (%v)", s.ObservedGeneration, obj.GetGeneration(), err)
	}
}

// Metrics move once per job and transition, and an operator that starts does not count again what is there.
func TestMetricsCountTransitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	named := func(name, script string) *training {
		return w.submit(gang(1, script, func(pj *kubeflowv1.PyTorchJob) {
			pj.Name, pj.Spec.RunPolicy.BackoffLimit = name, new(int32(1))
		}))
	}
	good, bad := named("good", "true"), named("bad", "exit 1")
	good.becomes(kubeflowv1.JobSucceeded)
	bad.becomes(kubeflowv1.JobFailed)
	w.Eventually("everything is counted once", func() error {
		return w.counted(map[string]float64{"created": 2, "successful": 1, "failed": 1, "restarted": 1})
	})
	w.stop()
	w.operate()
	w.waitForAnotherPass("after")
	w.Eventually("only what is new is counted", func() error {
		return w.counted(map[string]float64{"created": 1, "successful": 0, "failed": 0, "restarted": 0})
	})
}

// counted compares the counters of PyTorchJobs with what they should be.
func (w *world) counted(want map[string]float64) error {
	families, err := w.numbers.Gather()
	if err != nil {
		return err
	}
	have := map[string]float64{}
	for _, family := range families {
		name, ok := strings.CutPrefix(family.GetName(), "training_operator_jobs_")
		for _, m := range family.GetMetric() {
			if ok && m.GetLabel()[0].GetValue() == "pytorch" {
				have[strings.TrimSuffix(name, "_total")] += m.GetCounter().GetValue()
			}
		}
	}
	for name, n := range want {
		if have[name] != n {
			return fmt.Errorf("%s is %v, want %v: %v", name, have[name], n, have)
		}
	}
	return nil
}
