package job

import (
	"testing"
	"time"
)

func TestWhenAJobLeavesANodeThatIsCordoned(t *testing.T) {
	for _, row := range []struct {
		sentence string
		words    []string
		change   func(*Job)
		avoided  bool // the node already
		leaves   bool
	}{
		{sentence: "by default it stays"},
		{sentence: "with Move it leaves", words: []string{"leavesNodes=true"}, leaves: true},
		{sentence: "under restartPolicy Never a restart would end it: it stays", words: []string{"leavesNodes=true", "restartPolicy=Never"}},
		{sentence: "where no disruption is allowed it stays", words: []string{"leavesNodes=true", "maxDisruptions=0"}},
		{sentence: "where one disruption is allowed it leaves", words: []string{"leavesNodes=true", "maxDisruptions=1"}, leaves: true},
		{sentence: "where nodes are not avoided it stays", words: []string{"leavesNodes=true"}, change: func(j *Job) { j.AvoidNodes = AvoidOff }},
		{sentence: "where it has left the node before and came back it stays", words: []string{"leavesNodes=true"}, avoided: true},
		{sentence: "a replica that restarts alone leaves alone", words: []string{"leavesNodes=true", "scope=Replica"}, leaves: true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			j := demo(2)
			for _, word := range row.words {
				if err := set(&j, word); err != nil {
					t.Fatal(err)
				}
			}
			if row.change != nil {
				row.change(&j)
			}
			w := newWorld(j)
			rest(t, w)
			for name, node := range map[string]string{"demo-master-0": "n1", "demo-worker-0": "n2", "demo-worker-1": "n2"} {
				w.start(w.pods[name], node)
			}
			rest(t, w)
			if row.avoided {
				w.status.AvoidNodes = []AvoidedNode{{Node: "n2", Until: w.now.Add(time.Hour)}}
				w.newVersion()
			}
			w.leaving["n2"] = true
			w.now = w.now.Add(nodeLookPeriod + 2*nodeLookShare)
			rest(t, w)
			gone := 0
			for _, pod := range w.pods {
				if pod.DeletionTimestamp != nil {
					gone++
				}
			}
			want, disruptions := 0, int32(0)
			if row.leaves {
				want, disruptions = 3, 1
				if j.RestartScope() == ScopeReplica {
					want, disruptions = 2, 2
				}
			}
			s := w.status
			if gone != want || s.Disruptions != disruptions || s.Retries != 0 || s.Finished() {
				t.Errorf("%d pods leave, want %d; %d disruptions, want %d; %d retries", gone, want, s.Disruptions, disruptions, s.Retries)
			}
			if row.leaves && (s.LastFailure.Reason != reasonMaintenance || len(s.AvoidNodes) != 1) {
				t.Errorf("the last failure is %+v, and %+v are avoided", s.LastFailure, s.AvoidNodes)
			}
		})
	}
}

// A look at a node is a request: a job asks about each of its nodes once in a period, which is longer the more nodes it has.
func TestNodesAreLookedAtNowAndThen(t *testing.T) {
	w := started(t, demo(1, func(j *Job) { j.LeavesNodes = true }))
	looked := w.looked
	for _, step := range []struct {
		after time.Duration
		looks bool
	}{{time.Second, false}, {nodeLookPeriod, true}, {time.Second, false}} {
		w.now = w.now.Add(step.after)
		rest(t, w)
		if got := w.looked != looked; got != step.looks {
			t.Errorf("%s later it looks: %t, want %t", step.after, got, step.looks)
		}
		looked = w.looked
	}
	if w.looked.IsZero() {
		t.Error("it never looked")
	}
}
