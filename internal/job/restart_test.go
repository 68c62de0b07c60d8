package job

import (
	"testing"
	"time"
)

// Times of ends are whole seconds of several clocks, and a broken collective takes its members down within milliseconds.
// Who was it?
func TestTheCulprit(t *testing.T) {
	type happens func(w *world, pod string)
	exits := func(w *world, pod string) { w.exit(w.pods[pod], 1, "Error", "") }
	aborts := func(w *world, pod string) { w.exit(w.pods[pod], 134, "Error", "") }
	isKilled := func(w *world, pod string) { w.exit(w.pods[pod], 137, "Error", "") }
	runsOutOfMemory := func(w *world, pod string) { w.exit(w.pods[pod], 1, "OOMKilled", "") }
	isEvicted := func(w *world, pod string) { w.evict(w.pods[pod], 137) }
	for _, row := range []struct {
		sentence       string
		master, worker happens
		later          time.Duration // the worker's end is after the master's; before, if negative
		culprit        string
	}{
		{"an exit, then a kill", exits, isKilled, 2 * time.Second, "Master 0"},
		{"an exit, then an eviction", exits, isEvicted, 2 * time.Second, "Master 0"},
		{"a kill, then an exit", exits, isKilled, -2 * time.Second, "Worker 0"},
		{"an exit, and in the second after it a kill by the clock of another node", exits, isKilled, time.Second, "Worker 0"},
		{"two exits", exits, exits, -time.Second, "Worker 0"},
		{"in one second: a kill and an exit", exits, isKilled, 0, "Worker 0"},
		{"in one second: a kill and an abort", aborts, isKilled, 0, "Worker 0"},
		{"in one second: no memory and an abort", aborts, runsOutOfMemory, 0, "Worker 0"},
		{"in one second: an eviction and an exit", exits, isEvicted, 0, "Worker 0"},
		{"in one second: an eviction and a kill", isKilled, isEvicted, 0, "Worker 0"},
		{"in one second: an abort and an exit, of which neither is likelier", exits, aborts, 0, "Master 0"},
		{"in one second: two kills", isKilled, isKilled, 0, "Master 0"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := started(t, demo(1))
			began := w.now.Add(time.Minute)
			w.now = began
			row.master(w, "demo-master-0")
			w.now = began.Add(row.later)
			row.worker(w, "demo-worker-0")
			w.now = began.Add(2 * time.Second)
			if got := decide(w).Status.LastFailure; got == nil || got.Replica.String() != row.culprit {
				t.Errorf("the culprit is %+v, want %s", got, row.culprit)
			}
		})
	}
}

// A member that ended by itself may have ended because of a failure that another kubelet has not reported yet.
func TestAGangHearsItsMembersOut(t *testing.T) {
	for _, row := range []struct {
		sentence string
		code     int32
		other    int32         // how the other ended meanwhile; -1: it trains
		after    time.Duration // since the end
		judged   bool
	}{
		{"an exit while another trains: not yet", 1, -1, siblingWait - time.Millisecond, false},
		{"an exit while another has long been training on: now", 1, -1, siblingWait, true},
		{"an abort while another trains: not yet", 134, -1, siblingWait - time.Millisecond, false},
		{"a kill while another trains: at once", 137, -1, 0, true},
		{"an exit, and the other is done: at once", 1, 0, 0, true},
		{"an exit, and the other has fallen too: at once", 1, 1, 0, true},
		{"an exit by a clock that is ahead of ours: at once", 1, -1, -time.Minute, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			w := started(t, demo(1))
			end := w.now.Add(time.Hour)
			w.now = end
			w.exit(w.pods["demo-master-0"], row.code, "Error", "")
			if row.other >= 0 {
				w.exit(w.pods["demo-worker-0"], row.other, "", "")
			}
			w.now = end.Add(row.after)
			d := decide(w)
			if judged := d.Status.Attempt == 1; judged != row.judged {
				t.Errorf("judged: %v, want %v", judged, row.judged)
			}
			if !row.judged && !d.RequeueAt.Equal(end.Add(siblingWait)) {
				t.Errorf("looks again at %s, want %s", d.RequeueAt, end.Add(siblingWait))
			}
		})
	}
}
