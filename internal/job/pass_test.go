package job

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
)

// Training Operator 1.9 leaves jobs behind that have conditions and a start time, pods without an attempt that the
// kubelet restarts in place, and a Service for each of them.
func TestTakeOverFromTrainingOperator(t *testing.T) {
	w := newWorld(demo(1))
	for _, role := range []string{"Master", "Worker"} {
		pod := w.newPod(Replica{role, 0}, 0, "j1")
		delete(pod.Labels, naming.LabelAttempt)
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		w.pods[pod.Name] = pod
		w.start(pod, "n1")
		w.createChild(service(pod.Name), "j1")
	}
	w.status.set(Created, "PyTorchJobCreated", "", epoch)
	w.status.set(Running, "PyTorchJobRunning", "", epoch)
	w.status.StartTime = epoch

	rest(t, w)
	if len(w.pods) != 2 || w.status.Attempt != 0 || w.status.Retries != 0 || !w.status.Is(Running) || w.status.Ready != "2/2" {
		t.Errorf("not taken over as it was: %+v", w.status)
	}
	w.exit(w.pods["demo-master-0"], 0, "Completed", "")
	rest(t, w)
	w.gone(w.pods["demo-worker-0"])
	rest(t, w)
	if !w.status.Is(Succeeded) || len(w.children) != 0 {
		t.Errorf("succeeded %v, %d Services left", w.status.Is(Succeeded), len(w.children))
	}
}

func TestAStatusThatWasLostCatchesUpWithThePods(t *testing.T) {
	w := newWorld(demo(1))
	for _, role := range []string{"Master", "Worker"} {
		pod := w.newPod(Replica{role, 0}, 3, "j1")
		w.pods[pod.Name] = pod
		w.start(pod, "n1")
	}
	rest(t, w)
	if w.status.Attempt != 3 || len(w.pods) != 2 || !w.status.Is(Running) {
		t.Errorf("attempt %d with %d pods", w.status.Attempt, len(w.pods))
	}
}

// Training Operator 1.9 ends a job by an exit code without noting when.
func TestAFinishedJobWithoutACompletionTimeExpiresToo(t *testing.T) {
	w := newWorld(demo(1, func(j *Job) { j.Policy.TTLSecondsAfterFinished = ptr(int32(60)) }))
	w.status.set(Created, "PyTorchJobCreated", "", epoch)
	w.status.set(Failed, "PyTorchJobFailed", "", epoch)
	d := decide(w)
	if due := d.Status.condition(Failed).LastTransition.Add(60 * time.Second); !d.RequeueAt.Equal(due) {
		t.Errorf("looks again at %s, want %s", d.RequeueAt, due)
	}
}
