package cli_test

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// survivors are a gang, and a replica that its kubelet starts again in place. Neither may be retried; the second even
// exits 0 on SIGTERM.
const survivors = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: gang}
spec:
  runPolicy: {backoffLimit: 0}
  pytorchReplicaSpecs:
    Master: &replica
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: pytorch, image: none, command: [sleep, "600"]}]}}
    Worker: *replica
---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: alone}
spec:
  runPolicy: {backoffLimit: 0}
  tfReplicaSpecs:
    Worker:
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, image: none, command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 0.1; done"]}]}}
`

// Jobs that run when the cluster ends, in order or not, go on when it comes back, and are not charged for it.
func TestJobsGoOnWhenTheClusterComesBack(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run("a cluster that was "+name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			up := local.StartUp(t, dir).Ready()
			w := local.At(t, up.Kubeconfig())
			w.Apply(survivors)
			runs(w, "pytorchjob/gang", 0, 0)
			runs(w, "tfjob/alone", 0, 0)
			up.Signal(signal)
			up.Wait()
			local.StartUp(t, dir).Ready()
			runs(w, "pytorchjob/gang", 1, 1)
			runs(w, "tfjob/alone", 0, 1)
		})
	}
}

// runs waits until all of a job runs in an attempt, after so many disruptions and no retry.
func runs(w *local.World, name string, attempt, disruptions int32) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s runs after %d disruptions", name, disruptions), func() error {
		var job struct{ Status kubeflowv1.JobStatus }
		o := w.Try("", "get", name, "-o", "json")
		if err := json.Unmarshal([]byte(o.Stdout), &job); err != nil {
			return fmt.Errorf("%s: %w", o.Stderr, err)
		}
		s := job.Status
		if n := len(s.Conditions); n == 0 || s.Conditions[n-1].Type != kubeflowv1.JobRunning || s.Attempt != attempt || s.Retries != 0 || s.Disruptions != disruptions {
			return fmt.Errorf("its status is %s", o.Stdout)
		}
		return nil
	})
}
