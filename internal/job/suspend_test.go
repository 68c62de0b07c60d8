package job

import (
	"testing"
	"time"
)

// Whoever goes by the times of conditions and by the start time, as Flyte does, sees a suspended job wait.
func TestASuspendedJobReadsAsOneThatWaits(t *testing.T) {
	for _, row := range []struct {
		sentence string
		world    func() *world
	}{
		{"created suspended", func() *world { return newWorld(demo(1)) }},
		{"suspended while it ran", func() *world { return started(t, demo(1)) }},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := row.world()
			w.edit(func(j *Job) { j.Policy.Suspend = true })
			rest(t, w)
			created, suspended := w.status.condition(Created), w.status.condition(Suspended)
			if suspended == nil || created.LastTransition.Sub(suspended.LastTransition) < time.Second {
				t.Errorf("the conditions are %+v", w.status.Conditions)
			}
			if w.status.StartTime.IsZero() {
				t.Errorf("it has no start time")
			}
			before := w.status.StartTime
			w.now = w.now.Add(time.Hour)
			w.edit(func(j *Job) { j.Policy.Suspend = false })
			rest(t, w)
			if !w.status.StartTime.After(before) || w.status.Is(Suspended) {
				t.Errorf("resumed, it started at %s, and the conditions are %+v", w.status.StartTime, w.status.Conditions)
			}
		})
	}
}

// What has ended before the suspension is seen was not ended by it.
func TestASuccessInTheSecondOfASuspensionCounts(t *testing.T) {
	w := newWorld(demo(0, steps))
	rest(t, w)
	w.start(w.pods["demo-dataset-0"], "n1")
	rest(t, w)
	w.exit(w.pods["demo-dataset-0"], 0, "Completed", "")
	w.edit(func(j *Job) { j.Policy.Suspend = true })
	rest(t, w)
	w.edit(func(j *Job) { j.Policy.Suspend = false })
	rest(t, w)
	if w.status.Attempt != 1 || !contains(w.status.role("dataset").Done, 0) {
		t.Errorf("the dataset is prepared again: %+v", w.status.Roles)
	}
}

// A cache may not show yet that a replica has succeeded. A job that has run nothing has nothing to ask for.
func TestASuspensionLooksPastTheCache(t *testing.T) {
	suspended := func(w *world) Ask {
		o := w.observe(0)
		o.Job.Policy.Suspend, o.Live = true, false
		return Decide(o).Ask
	}
	if !suspended(started(t, demo(1))).Pods {
		t.Error("pods are deleted on the word of a cache")
	}
	if suspended(newWorld(demo(1))).Pods {
		t.Error("a job that begins suspended costs a list")
	}
}

func TestATrainingThatSucceededIsNotRunAgainAfterASuspension(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      Job
		pod      string
	}{
		{"a gang", demo(1), "demo-master-0"},
		{"an elastic job", demo(2, elastic), "demo-worker-1"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := started(t, row.job)
			w.exit(w.pods[row.pod], 0, "Completed", "")
			w.edit(func(j *Job) { j.Policy.Suspend = true })
			rest(t, w)
			if !w.status.Is(Suspended) || w.status.Finished() {
				t.Fatalf("a suspended job has no verdict: %+v", w.status.Conditions)
			}
			for _, pod := range w.pods {
				w.gone(pod)
			}
			w.edit(func(j *Job) { j.Policy.Suspend = false })
			rest(t, w)
			if !w.status.Is(Succeeded) || w.status.Attempt != 0 || w.status.endReason() != ReasonSucceeded {
				t.Errorf("resumed, it is %+v in attempt %d", w.status.Conditions, w.status.Attempt)
			}
		})
	}
}
