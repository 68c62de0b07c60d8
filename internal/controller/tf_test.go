package controller_test

import (
	"testing"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Replicas of a TFJob are restarted in place by the kubelet. Each failure is counted, and the one after the last retry
// ends the job and its crash loop.
func TestRestartsInPlaceAreCounted(t *testing.T) {
	t.Parallel()
	inPlace := func(tf *kubeflowv1.TFJob) {
		tf.Spec.RunPolicy.BackoffLimit = new(int32(1))
		for _, role := range tf.Spec.TFReplicaSpecs {
			role.RestartPolicy = kubeflowv1.RestartPolicyOnFailure
		}
	}
	j := newWorld(t).submit(tensorflow(roles{"PS": running(1, `sleep 600`), "Worker": running(1, `exit 1`)}, inPlace))
	s := j.becomes(kubeflowv1.JobFailed)
	if s.Retries != 1 || s.LastFailure.Replica != "worker-0" {
		t.Errorf("status: %+v", s)
	}
	j.comesToRest()
}
