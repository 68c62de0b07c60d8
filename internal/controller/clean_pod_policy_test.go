package controller_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// left is what is left of a job's pods: their phases.
type left map[string]corev1.PodPhase

// Each job has a Master, a Worker that ended well and a Worker that still runs, when it ends in one of four ways.
func TestWhatCleanPodPolicyLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const done, broken, runs = corev1.PodSucceeded, corev1.PodFailed, corev1.PodRunning
	for _, c := range []struct {
		policy kubeflowv1.CleanPodPolicy
		ending string
		leaves left
	}{
		{"None", "succeeds", left{"master-0": done, "worker-0": done, "worker-1": runs}},
		{"Running", "succeeds", left{"master-0": done, "worker-0": done}},
		{"All", "succeeds", left{}},
		{"None", "fails", left{"master-0": broken, "worker-0": done, "worker-1": runs}},
		{"Running", "fails", left{"master-0": broken, "worker-0": done}},
		{"All", "fails", left{}},
		{"None", "exceeds its deadline", left{"worker-0": done}},
		{"Running", "exceeds its deadline", left{"worker-0": done}},
		{"All", "exceeds its deadline", left{}},
		{"None", "exceeds its backoff limit", left{"master-0": broken, "worker-0": done}},
		{"Running", "exceeds its backoff limit", left{"master-0": broken, "worker-0": done}},
		{"All", "exceeds its backoff limit", left{}},
	} {
		w.row(fmt.Sprintf("%s, the job %s", c.policy, c.ending), func(w *world) {
			gate := filepath.Join(w.t.TempDir(), "gate")
			job, verdict := ending(c.ending, gate)
			job.Name = strings.ToLower(string(c.policy)) + "-" + strings.ReplaceAll(c.ending, " ", "-")
			job.Spec.RunPolicy.CleanPodPolicy = &c.policy
			j := w.submit(job)
			j.becomes(kubeflowv1.JobRunning)
			w.UntilPhase(j.name+"-worker-0", done)
			if c.ending == "exceeds its deadline" {
				j.edit(func(obj client.Object) { policyOf(obj).ActiveDeadlineSeconds = new(int64(1)) })
			}
			open(w.t, gate)
			j.becomes(verdict)
			w.waitForAnotherPass(j.name + "-after")
			j.leaves(c.leaves)
		})
	}
}

// ending is a job that ends in the way named when the gate is opened, and the verdict it gets.
func ending(way, gate string) (*kubeflowv1.PyTorchJob, kubeflowv1.JobConditionType) {
	wait := fmt.Sprintf(`until test -f %s; do sleep 0.1; done; `, gate)
	policy, end, verdict := kubeflowv1.RestartPolicyOnFailure, "sleep 600", kubeflowv1.JobFailed
	var limit *int32
	switch way {
	case "succeeds":
		end, verdict = wait+"exit 0", kubeflowv1.JobSucceeded
	case "fails":
		policy, end = kubeflowv1.RestartPolicyNever, wait+"exit 1"
	case "exceeds its backoff limit":
		limit, end = new(int32(0)), wait+"exit 1"
	}
	pj := pytorch(roles{"Master": running(1, end), "Worker": running(2, "test $RANK = 1 && sleep 2 && exit 0; sleep 600")})
	pj.Spec.RunPolicy.BackoffLimit = limit
	for _, spec := range pj.Spec.PyTorchReplicaSpecs {
		spec.RestartPolicy = policy
	}
	return pj, verdict
}

// leaves waits until the job's pods are as they should be, and its Services there if and only if a pod can use them.
func (j *training) leaves(want left) {
	j.Helper()
	j.Eventually(fmt.Sprintf("of job %s there is %v", j.name, want), func() error {
		have, used := left{}, false
		for name, pod := range j.pods() {
			have[name] = pod.Status.Phase
			used = used || pod.Status.Phase == corev1.PodRunning
		}
		if services := j.services(); !maps.Equal(have, want) || used != (len(services) > 0) {
			return fmt.Errorf("there is %v, with services %q", have, services)
		}
		return nil
	})
}

// waitForAnotherPass lets the operator finish what it is about: it sees to a job that comes after.
func (w *world) waitForAnotherPass(name string) {
	w.Helper()
	w.submit(gang(1, "true", func(pj *kubeflowv1.PyTorchJob) {
		pj.Name, pj.Spec.RunPolicy.Suspend = name, new(true)
	})).becomes(kubeflowv1.JobSuspended)
}
