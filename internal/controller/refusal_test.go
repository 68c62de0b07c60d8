package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// A kubelet refuses a worker's pod, which was sent there past the scheduler and asks for more than the node has. The pod is replaced
// alone: the master goes on in its own, and nothing is charged, though no retry is allowed.
func TestARefusedPodIsReplacedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := gang(1, "sleep 600", func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.BackoffLimit = new(int32(0)) })
	nodes, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=linux"})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("no node: %v", err)
	}
	worker := &job.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec
	worker.NodeName = nodes.Items[0].Name
	worker.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10k")}
	j := w.submit(job)
	s := j.until("is refused", func(s kubeflowv1.JobStatus) bool {
		return s.LastFailure != nil && strings.Contains(s.Message, "restart delay")
	})
	master := w.UntilPhase("demo-master-0", corev1.PodRunning)
	f := s.LastFailure
	if f.Class != kubeflowv1.FailureRefusal || f.Reason != "OutOfcpu" || f.Node != worker.NodeName || s.Attempt != 0 || s.Restarts != 0 {
		t.Errorf("the last failure is %+v, and the status is\n%s", f, describe(s))
	}
	if len(s.AvoidNodes) != 1 || s.AvoidNodes[0].Node != worker.NodeName || s.AvoidNodes[0].Strikes < 2 {
		t.Errorf("avoided are %+v", s.AvoidNodes)
	}
	if again := j.pods()["master-0"]; again == nil || again.UID != master.UID {
		t.Errorf("the master was restarted")
	}
}

// A training that saves a checkpoint when it is told to end, and exits with 0, is not done for that: neither the replica nor, where
// it is the master, the job.
func TestExitCodeZeroOfADeletedPodIsNoSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(1, `trap 'exit 0' TERM; while true; do sleep 0.1; done`))
	for i, pod := range []string{"demo-master-0", "demo-worker-0"} {
		attempt := int32(i)
		j.until("runs", func(s kubeflowv1.JobStatus) bool {
			return s.Attempt == attempt && newest(s).Type == kubeflowv1.JobRunning
		})
		w.Kubectl("delete", "pod", pod)
	}
	s := j.until("runs again", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 2 && newest(s).Type == kubeflowv1.JobRunning })
	if s.Retries != 0 || s.Disruptions != 2 || condition(s, kubeflowv1.JobSucceeded).Type != "" {
		t.Errorf("the status is\n%s", describe(s))
	}
}

// The master is done while a worker still writes. The job has succeeded, and the worker may finish.
func TestWorkersMayFinishAfterTheMaster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	master, gate := dir+"/master", dir+"/worker"
	wait := func(gate string) string { return fmt.Sprintf("until test -f %s; do sleep 0.1; done; ", gate) }
	j := w.submit(pytorch(roles{
		"Master": running(1, wait(master)), "Worker": running(1, wait(gate)+"echo the last shard is written"),
	}))
	j.becomes(kubeflowv1.JobRunning)
	open(t, master)
	j.becomes(kubeflowv1.JobSucceeded)
	w.waitForAnotherPass("after")
	if pod := j.pods()["worker-0"]; pod == nil || pod.DeletionTimestamp != nil {
		t.Fatalf("the worker was stopped: %+v", pod)
	}
	open(t, gate)
	w.UntilPhase("demo-worker-0", corev1.PodSucceeded)
	if log := w.Logs("demo-worker-0"); !strings.Contains(log, "the last shard is written") {
		t.Errorf("the worker's log is %q", log)
	}
	j.comesToRest()
}
