package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// After the end of a job with a Master and a Worker, which of them are removed, and does the Service go?
func TestCleanPodPolicy(t *testing.T) {
	type end func(w *world)
	succeeds := func(w *world) { w.exit(w.pods["demo-master-0"], 0, "Completed", "") }
	fails := func(w *world) {
		w.exit(w.pods["demo-master-0"], 1, "Error", "")
		w.now = w.now.Add(siblingWait)
	}
	deadline := func(w *world) { w.now = w.now.Add(time.Hour) }
	for _, row := range []struct {
		policy  CleanPodPolicy
		ends    string
		end     end
		removed string
	}{
		{CleanNone, "succeeds", succeeds, ""},
		{CleanRunning, "succeeds", succeeds, "worker-0"},
		{CleanAll, "succeeds", succeeds, "master-0 worker-0"},
		{CleanNone, "fails", fails, ""},
		{CleanRunning, "fails", fails, "worker-0"},
		{CleanAll, "fails", fails, "master-0 worker-0"},
		{CleanNone, "passes its deadline", deadline, "master-0 worker-0"},
		{CleanRunning, "passes its deadline", deadline, "master-0 worker-0"},
		{CleanAll, "passes its deadline", deadline, "master-0 worker-0"},
		{CleanNone, "uses up its retries", fails, "worker-0"},
		{CleanRunning, "uses up its retries", fails, "worker-0"},
		{CleanAll, "uses up its retries", fails, "master-0 worker-0"},
	} {
		t.Run(fmt.Sprintf("%s when the job %s", row.policy, row.ends), func(t *testing.T) {
			w := started(t, demo(1, func(j *Job) {
				j.Policy.CleanPodPolicy = row.policy
				j.Policy.ActiveDeadlineSeconds = ptr(int64(600))
				if row.ends == "uses up its retries" {
					j.Policy.BackoffLimit = ptr(int32(0))
				} else {
					policy(RestartNever)(j)
				}
			}))
			row.end(w)
			d := decide(w)
			var removed []string
			for _, del := range d.DeletePods {
				removed = append(removed, strings.TrimPrefix(del.Pod.Name, "demo-"))
			}
			slices.Sort(removed)
			if got := strings.Join(removed, " "); got != row.removed || !d.Status.Finished() {
				t.Errorf("removed %q, want %q; finished %v", got, row.removed, d.Status.Finished())
			}
		})
	}
}
