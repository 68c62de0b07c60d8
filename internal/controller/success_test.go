package controller_test

import (
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Every job here succeeds while one of its replicas that does not matter would run on for ever, or has failed.
func TestWhoseEndEndsTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const ever, ends = "sleep 600", "sleep 1"
	first := `case $HOSTNAME in *-0) sleep 1;; *) sleep 600;; esac`
	w.row("elastic PyTorch: one Worker, once none runs", func(w *world) {
		gate := filepath.Join(w.t.TempDir(), "gate")
		script := fmt.Sprintf(`case $HOSTNAME in *-1) until test -f %s; do sleep 0.1; done; exit 1;; esac`, gate)
		j := w.submit(pytorch(roles{"Worker": running(2, script)}, func(pj *kubeflowv1.PyTorchJob) {
			pj.Name, pj.Spec.ElasticPolicy = "elastic", &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(1)), MaxReplicas: new(int32(2))}
		}))
		j.until("knows that one is done", func(s kubeflowv1.JobStatus) bool {
			return s.ReplicaStatuses["Worker"] != nil && s.ReplicaStatuses["Worker"].CompletedIndexes == "0"
		})
		open(w.t, gate)
		if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 {
			w.Errorf("the status is\n%s", describe(s))
		}
		j.comesToRest()
	})
	for i, c := range []struct {
		sentence string
		job      client.Object
	}{
		{"PyTorch with a Master: the Master", pytorch(roles{"Master": running(1, ends), "Worker": running(1, ever)})},
		{"PyTorch without a Master: all Workers", pytorch(roles{"Worker": running(2, ends)})},
		{"TF with a Chief: the Chief", tensorflow(roles{"Chief": running(1, ends), "PS": running(1, ever), "Worker": running(1, ever)})},
		{"TF with a Master: the Master", tensorflow(roles{"Master": running(1, ends), "Worker": running(1, ever)})},
		{"TF without either: Worker 0", tensorflow(roles{"Worker": running(2, first)})},
		{"TF with successPolicy AllWorkers: all Workers", tensorflow(roles{"Worker": running(2, ends), "PS": running(1, ever)}, func(tf *kubeflowv1.TFJob) {
			tf.Spec.SuccessPolicy = new(kubeflowv1.SuccessPolicyAllWorkers)
		})},
		{"a sidecar that never ends does not hold the job", pytorch(roles{"Master": running(1, ends), "Worker": running(1, ever)}, func(pj *kubeflowv1.PyTorchJob) {
			spec := &pj.Spec.PyTorchReplicaSpecs["Master"].Template.Spec
			proxy := *spec.Containers[0].DeepCopy()
			spec.Containers[0].Name = "pytorch"
			proxy.Name, proxy.Command = "proxy", []string{"sleep", "600"}
			spec.Containers = append([]corev1.Container{proxy}, spec.Containers...)
		})},
		{"restartPolicy Always does not run again what ended well", pytorch(roles{"Worker": running(1, ends)}, func(pj *kubeflowv1.PyTorchJob) {
			pj.Spec.PyTorchReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyAlways
		})},
		{"replicas 0 is no such replica", pytorch(roles{"Master": running(1, ends), "Worker": running(0, ever)})},
	} {
		w.row(c.sentence, func(w *world) {
			c.job.SetName(fmt.Sprintf("row-%d", i))
			j := w.submit(c.job)
			if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 || s.CompletionTime == nil {
				w.Errorf("the status is\n%s", describe(s))
			}
			j.comesToRest()
		})
	}
}

// A Worker that ended well is not run again, though its pod is gone.
func TestAReplicaThatSucceededIsNotRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(pytorch(roles{"Master": running(1, "sleep 600"), "Worker": running(1, "true")}))
	j.until("knows that the worker is done", func(s kubeflowv1.JobStatus) bool {
		return s.ReplicaStatuses["Worker"] != nil && s.ReplicaStatuses["Worker"].CompletedIndexes == "0"
	})
	j.becomes(kubeflowv1.JobRunning)
	w.Kubectl("delete", "pod", "demo-worker-0")
	w.waitForAnotherPass("after")
	if s := j.status(); newest(s).Type != kubeflowv1.JobRunning || s.Restarts != 0 || j.pods()["worker-0"] != nil {
		t.Errorf("the status is\n%s", describe(s))
	}
}
