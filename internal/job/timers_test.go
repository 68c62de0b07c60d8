package job

import (
	"math"
	"testing"
	"time"
)

// Stored times are whole seconds. A timer never acts early, and at most a second late.
func TestActiveDeadline(t *testing.T) {
	w := newWorld(demo(1, func(j *Job) { j.Policy.ActiveDeadlineSeconds = ptr(int64(10)) }))
	w.now = epoch.Add(300 * time.Millisecond)
	rest(t, w)
	for _, row := range []struct {
		sentence string
		after    time.Duration // since the job was first seen
		failed   bool
	}{
		{"well before", 5 * time.Second, false},
		{"ten seconds after the start, to the millisecond", 10 * time.Second, false},
		{"less than a second later", 10*time.Second + 700*time.Millisecond, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w.now = epoch.Add(300*time.Millisecond + row.after)
			d := decide(w)
			if d.Status.Is(Failed) != row.failed {
				t.Errorf("failed %v, want %v", d.Status.Is(Failed), row.failed)
			}
			if !row.failed && !d.RequeueAt.Equal(epoch.Add(11*time.Second)) {
				t.Errorf("looks again at %s", d.RequeueAt)
			}
		})
	}
}

// The master has succeeded in time, and the cache does not show it yet when the deadline passes.
func TestADeadlineDoesNotFailAJobThatHasSucceeded(t *testing.T) {
	w := started(t, demo(1, func(j *Job) { j.Policy.ActiveDeadlineSeconds = ptr(int64(10)) }))
	w.exit(w.pods["demo-master-0"], 0, "Completed", "")
	w.now = w.now.Add(time.Minute)
	if _, done := w.reconcile(chaos{lag: 1}); !done || !w.status.Is(Succeeded) {
		t.Errorf("the status is %+v", w.status.Conditions)
	}
}

// A number so large that no clock can count to it is somebody's word for never.
func TestADeadlineBeyondAllTimeNeverPasses(t *testing.T) {
	for _, seconds := range []int64{9999999999, math.MaxInt64} {
		w := started(t, demo(1, func(j *Job) { j.Policy.ActiveDeadlineSeconds = &seconds }))
		w.now = w.now.AddDate(100, 0, 0)
		if d := decide(w); d.Status.Is(Failed) {
			t.Errorf("%d seconds pass within a hundred years: %s", seconds, d.Status.Conditions[len(d.Status.Conditions)-1].Message)
		}
	}
}

func TestTTL(t *testing.T) {
	w := started(t, demo(0, func(j *Job) { j.Policy.TTLSecondsAfterFinished = ptr(int32(5)) }))
	w.now = epoch.Add(300 * time.Millisecond)
	w.exit(w.pods["demo-master-0"], 0, "Completed", "")
	rest(t, w)
	for after, gone := range map[time.Duration]bool{0: false, 5 * time.Second: false, 5700 * time.Millisecond: true, time.Hour: true} {
		w.now = epoch.Add(300*time.Millisecond + after)
		if got := decide(w).DeleteJob; got != gone {
			t.Errorf("%s after the end: deleted %v, want %v", after, got, gone)
		}
	}
}

// A job stays beyond its TTL while a worker may finish: with the job its pods would be deleted.
func TestTheTTLWaitsForWorkersThatMayFinish(t *testing.T) {
	w := started(t, demo(1, func(j *Job) {
		j.Policy.TTLSecondsAfterFinished, j.Policy.FinishWithin, j.Roles[1].MayFinish = ptr(int32(0)), 30*time.Second, true
	}))
	w.exit(w.pods["demo-master-0"], 0, "Completed", "")
	rest(t, w)
	if d := decide(w); w.jobGone || !d.RequeueAt.Equal(epoch.Add(30*time.Second)) {
		t.Errorf("deleted %v, looks again at %s", w.jobGone, d.RequeueAt)
	}
	w.exit(w.pods["demo-worker-0"], 0, "Completed", "")
	if !decide(w).DeleteJob {
		t.Errorf("it is not deleted when the worker has finished")
	}
}

// A job that another controller created stays for half a minute, however short its TTL; one that a person created is deleted
// on time.
func TestAnOwnedJobStaysHalfAMinute(t *testing.T) {
	for _, row := range []struct {
		sentence string
		owned    bool
		ttl      int32
		stays    time.Duration
	}{
		{"made by a person", false, 5, 5 * time.Second},
		{"made by a controller", true, 5, 30 * time.Second},
		{"made by a controller, to be kept longer", true, 100, 100 * time.Second},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := started(t, demo(0, func(j *Job) { j.Owned, j.Policy.TTLSecondsAfterFinished = row.owned, &row.ttl }))
			w.exit(w.pods["demo-master-0"], 0, "Completed", "")
			rest(t, w)
			w.now = epoch.Add(row.stays - time.Second)
			if d := decide(w); d.DeleteJob || !d.RequeueAt.Equal(epoch.Add(row.stays)) {
				t.Errorf("a second before: deleted %v, looks again at %s", d.DeleteJob, d.RequeueAt)
			}
			w.now = epoch.Add(row.stays)
			if !decide(w).DeleteJob {
				t.Errorf("it is not deleted when it is due")
			}
		})
	}
}

// Training Operator 1.9 failed jobs without saying when they ended, and could then not remove them.
func TestTTLOfAJobWithoutCompletionTime(t *testing.T) {
	w := newWorld(demo(0, func(j *Job) { j.Policy.TTLSecondsAfterFinished = ptr(int32(5)) }))
	w.status.Conditions = []Condition{{Type: Failed, Status: true, LastTransition: epoch}}
	for after, gone := range map[time.Duration]bool{4 * time.Second: false, 5 * time.Second: true} {
		w.now = epoch.Add(after)
		if got := decide(w).DeleteJob; got != gone {
			t.Errorf("%s after the end: deleted %v, want %v", after, got, gone)
		}
	}
}
