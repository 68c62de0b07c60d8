package job

import "testing"

// What is only to be seen in the pods may wait for other news; what the job must remember may not.
func TestHowToWrite(t *testing.T) {
	w := started(t, demo(2))
	w.exit(w.pods["demo-worker-0"], 0, "Completed", "")
	if d := decide(w); d.Write != WriteLater {
		t.Errorf("a worker that is done: write %q", d.Write)
	}
	w.exit(w.pods["demo-master-0"], 0, "Completed", "")
	if d := decide(w); d.Write != WriteNow {
		t.Errorf("a verdict: write %q", d.Write)
	}
}
