package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// uids are those of the job's pods.
func (j *training) uids() map[string]types.UID {
	j.Helper()
	uids := map[string]types.UID{}
	for name, pod := range j.pods() {
		uids[name] = pod.UID
	}
	return uids
}

// A gang was told its size when it started: another size is another attempt, for which nothing is charged.
func TestAGangOfAnotherSizeIsAnotherAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(1, `echo $RANK of $WORLD_SIZE; sleep 600`))
	j.becomes(kubeflowv1.JobRunning)
	w.Kubectl("scale", "pytorchjob", "demo", "--replicas=2")
	s := j.until("runs with three replicas", func(s kubeflowv1.JobStatus) bool {
		return newest(s).Type == kubeflowv1.JobRunning && s.Ready == "3/3"
	})
	if s.Attempt != 1 || s.Restarts != 0 || s.Attempts[0].Reason != "Scaled" {
		t.Errorf("the status is\n%s", describe(s))
	}
	w.Await("2 of 3", "logs", "demo-worker-1")
}

// Where replicas restart alone they also come and go alone, at the top end.
func TestReplicasThatStandAloneComeAndGoAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elastic := pytorch(roles{"Worker": running(2, "sleep 600")}, func(pj *kubeflowv1.PyTorchJob) {
		pj.Name, pj.Spec.ElasticPolicy = "elastic", &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(1)), MaxReplicas: new(int32(3))}
	})
	tf := tensorflow(roles{"Chief": running(1, "sleep 600"), "Worker": running(2, "sleep 600")})
	for _, job := range []client.Object{elastic, tf} {
		w.row(fmt.Sprintf("%T", job), func(w *world) {
			j := w.submit(job)
			j.becomes(kubeflowv1.JobRunning)
			size := func(workers int32) {
				j.edit(func(obj client.Object) { specsOf(obj)["Worker"].Replicas = &workers })
				j.until(fmt.Sprintf("has %d workers", workers), func(s kubeflowv1.JobStatus) bool {
					return s.ReplicaStatuses["Worker"].Active == workers && len(j.pods()) == int(workers)+len(specsOf(job))-1
				})
			}
			before := j.uids()
			size(3)
			size(1)
			for name, uid := range j.uids() {
				if before[name] != uid {
					w.Errorf("%s was restarted", name)
				}
			}
			if s := j.status(); s.Attempt != 0 || s.Restarts != 0 || newest(s).Type != kubeflowv1.JobRunning {
				w.Errorf("the status is\n%s", describe(s))
			}
		})
	}
}

// A change of policy takes effect at once.
func TestAChangedPolicyTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.row("a backoff limit below the retries made ends the job", func(w *world) {
		j := w.submit(gang(1, failing(w.t, "exit 1"), func(pj *kubeflowv1.PyTorchJob) { pj.Name = "limit" }))
		j.until("runs after a retry", func(s kubeflowv1.JobStatus) bool { return s.Retries == 1 && newest(s).Type == kubeflowv1.JobRunning })
		j.edit(func(obj client.Object) { policyOf(obj).BackoffLimit = new(int32(0)) })
		if s := j.becomes(kubeflowv1.JobFailed); !strings.Contains(newest(s).Message, "backoffLimit 0 is used up") || s.Retries != 1 {
			w.Errorf("the status is\n%s", describe(s))
		}
		j.comesToRest()
	})
	w.row("cleanPodPolicy All removes the pods of a finished job", func(w *world) {
		j := w.submit(gang(1, "true", func(pj *kubeflowv1.PyTorchJob) { pj.Name = "clean" }))
		j.becomes(kubeflowv1.JobSucceeded)
		w.UntilPhase("clean-master-0", corev1.PodSucceeded)
		j.edit(func(obj client.Object) { policyOf(obj).CleanPodPolicy = new(kubeflowv1.CleanPodPolicyAll) })
		j.leaves(left{})
	})
	w.row("a TTL that has run out removes a finished job", func(w *world) {
		j := w.submit(gang(1, "true", func(pj *kubeflowv1.PyTorchJob) { pj.Name = "ttl" }))
		j.becomes(kubeflowv1.JobSucceeded)
		j.edit(func(obj client.Object) { policyOf(obj).TTLSecondsAfterFinished = new(int32(0)) })
		j.isGone()
	})
}

// A changed template touches no pod that runs; the next attempt has it.
func TestAChangedTemplateIsForTheNextAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(1, `echo old; sleep 600`))
	j.becomes(kubeflowv1.JobRunning)
	before := j.uids()
	j.edit(func(obj client.Object) {
		for _, spec := range specsOf(obj) {
			spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "echo new; sleep 600"}
		}
	})
	w.waitForAnotherPass("after")
	for name, uid := range j.uids() {
		if before[name] != uid {
			t.Errorf("%s was restarted by the edit", name)
		}
	}
	j.disrupt("worker-0", deleted)
	j.until("runs again", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 && newest(s).Type == kubeflowv1.JobRunning })
	w.Await("new", "logs", "demo-master-0")
}
