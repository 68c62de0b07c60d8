package job

import (
	"testing"
	"time"
)

func TestRestartDelay(t *testing.T) {
	for n, want := range map[int32]time.Duration{
		0: 0, 1: 0, 2: 10 * time.Second, 3: 20 * time.Second, 4: 40 * time.Second, 5: 80 * time.Second, 6: 160 * time.Second,
		7: 300 * time.Second, 8: 300 * time.Second, 1000: 300 * time.Second,
	} {
		if got := restartDelay(n); got != want {
			t.Errorf("charged restart %d waits %s, want %s", n, got, want)
		}
	}
}

func TestBackoffLimit(t *testing.T) {
	for _, row := range []struct {
		sentence string
		limit    *int32
		made     int32
		ends     bool
		retries  int32
	}{
		{"no limit: another retry", nil, 100, false, 101},
		{"limit 0: the first failure ends the job, and is no retry", ptr(int32(0)), 0, true, 0},
		{"limit 1: the first failure is retried", ptr(int32(1)), 0, false, 1},
		{"limit 1: the second ends the job", ptr(int32(1)), 1, true, 1},
		{"a limit lowered below the retries made ends the job and rewrites no history", ptr(int32(1)), 3, true, 3},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := started(t, demo(1, func(j *Job) { j.Policy.BackoffLimit = row.limit }))
			w.status.Retries = row.made
			w.exit(w.pods["demo-worker-0"], 1, "Error", "")
			w.now = w.now.Add(siblingWait)
			d := decide(w)
			if d.Status.Is(Failed) != row.ends || d.Status.Retries != row.retries {
				t.Errorf("failed %v with %d retries", d.Status.Is(Failed), d.Status.Retries)
			}
		})
	}
}

// started is a world whose job runs.
func started(t *testing.T, j Job) *world {
	t.Helper()
	w := newWorld(j)
	rest(t, w)
	for _, pod := range w.pods {
		w.start(pod, "n1")
	}
	rest(t, w)
	if !w.status.Is(Running) {
		t.Fatalf("the job does not run: %+v", w.status)
	}
	return w
}

func rest(t *testing.T, w *world) {
	t.Helper()
	if err := w.runToRest(nil); err != nil {
		t.Fatal(err)
	}
}

// decide is the next decision, with the facts it asks for, not carried out.
func decide(w *world) Decision {
	o := w.observe(0)
	d := Decide(o)
	for d.Asks() {
		o = w.answer(o, d.Ask)
		d = Decide(o)
	}
	return d
}
