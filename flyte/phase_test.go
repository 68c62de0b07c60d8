package flyte

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

var birth = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// at is so many seconds after the job's creation.
func at(seconds int) metav1.Time {
	return metav1.NewTime(birth.Add(time.Duration(seconds) * time.Second))
}

func condition(kind kubeflowv1.JobConditionType, status corev1.ConditionStatus, seconds int) kubeflowv1.JobCondition {
	return kubeflowv1.JobCondition{Type: kind, Status: status, LastTransitionTime: at(seconds), Reason: "PyTorchJob" + string(kind), Message: "it is so"}
}

func yes(kind kubeflowv1.JobConditionType, seconds int) kubeflowv1.JobCondition {
	return condition(kind, corev1.ConditionTrue, seconds)
}

func no(kind kubeflowv1.JobConditionType, seconds int) kubeflowv1.JobCondition {
	return condition(kind, corev1.ConditionFalse, seconds)
}

// pytorchJob was started a second after its creation.
func pytorchJob(conditions ...kubeflowv1.JobCondition) *kubeflowv1.PyTorchJob {
	start := at(1)
	return &kubeflowv1.PyTorchJob{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "research", CreationTimestamp: at(0)},
		Status:     kubeflowv1.JobStatus{StartTime: &start, Conditions: conditions},
	}
}

func unstarted(job *kubeflowv1.PyTorchJob, suspended bool) *kubeflowv1.PyTorchJob {
	job.Status.StartTime = nil
	job.Spec.RunPolicy.Suspend = &suspended
	return job
}

func deleted(job *kubeflowv1.PyTorchJob) *kubeflowv1.PyTorchJob {
	job.DeletionTimestamp = new(at(30))
	return job
}

func TestReadPhase(t *testing.T) {
	const created, running, restarting = kubeflowv1.JobCreated, kubeflowv1.JobRunning, kubeflowv1.JobRestarting
	const succeeded, failed, suspended = kubeflowv1.JobSucceeded, kubeflowv1.JobFailed, kubeflowv1.JobSuspended
	for _, c := range []struct {
		name   string
		job    Manifest
		after  int
		v1, v2 Phase
		why    string
	}{
		{"a fresh job has no condition: it waits",
			unstarted(pytorchJob(), false), 59, PhaseQueued, PhaseQueued, "there is no condition yet"},
		{"no operator has seen the job for more than a minute",
			unstarted(pytorchJob(), false), 61, PhaseError, PhaseError, "status.startTime is not set 1m1s after creation"},
		{"suspended for more than a minute without a start time: only Flyte 1 waits",
			unstarted(pytorchJob(yes(suspended, 1)), true), 61, PhaseQueued, PhaseError, "status.startTime is not set 1m1s after creation"},
		{"suspended with a start time: Flyte 2 does not know the condition",
			pytorchJob(yes(created, 0), yes(suspended, 1)), 600, PhaseQueued, PhaseUndefined, "the newest True condition is Suspended, which this Flyte does not know"},
		{"created: it waits", pytorchJob(yes(created, 0)), 5, PhaseQueued, PhaseQueued, "the newest True condition is Created"},
		{"running", pytorchJob(yes(created, 0), yes(running, 1)), 5, PhaseRunning, PhaseRunning, "the newest True condition is Running"},
		{"restarting counts as running",
			pytorchJob(yes(created, 0), no(running, 9), yes(restarting, 8)), 9, PhaseRunning, PhaseRunning, "the newest True condition is Restarting"},
		{"succeeded", pytorchJob(yes(created, 0), no(running, 9), yes(succeeded, 9)), 9, PhaseSuccess, PhaseSuccess,
			"the newest True condition is Succeeded; Flyte now looks for outputs, and an error file makes it a failure"},
		{"failed", pytorchJob(yes(created, 0), no(running, 9), yes(failed, 9)), 9, PhaseRetryable, PhaseRetryable, "the newest True condition is Failed"},
		{"created and succeeded within one second: it waits for ever",
			pytorchJob(yes(created, 1), yes(succeeded, 1)), 600, PhaseQueued, PhaseQueued,
			"the newest True condition is Created; Succeeded is as new, but later in the list"},
		{"the newest counts, wherever it is in the list", pytorchJob(yes(succeeded, 9), yes(created, 0)), 9, PhaseSuccess, PhaseSuccess,
			"the newest True condition is Succeeded; Flyte now looks for outputs, and an error file makes it a failure"},
		{"an empty list of conditions", pytorchJob([]kubeflowv1.JobCondition{}...), 5, PhaseError, PhaseError, "status.conditions is an empty list"},
		{"no condition is true", pytorchJob(no(running, 1)), 5, PhaseError, PhaseError, "no condition is True"},
		{"a condition of a new type", pytorchJob(yes(created, 0), yes("Draining", 5)), 9, PhaseUndefined, PhaseUndefined,
			"the newest True condition is Draining, which this Flyte does not know"},
		{"the job is gone", nil, 9, PhaseSystem, PhaseSystem, "the job is gone, and Flyte did not delete it"},
		{"somebody deletes the job while it runs", deleted(pytorchJob(yes(running, 1))), 31, PhaseSystem, PhaseSystem,
			"the job is being deleted and has not ended"},
		{"somebody deletes the job that has ended", deleted(pytorchJob(yes(failed, 9))), 31, PhaseRetryable, PhaseRetryable,
			"the newest True condition is Failed"},
		{"a TFJob is read the same way",
			&kubeflowv1.TFJob{Status: kubeflowv1.JobStatus{StartTime: new(at(1)), Conditions: []kubeflowv1.JobCondition{yes(running, 1)}}}, 9,
			PhaseRunning, PhaseRunning, "the newest True condition is Running"},
		{"an MPIJob is read the same way",
			&kubeflowv1.MPIJob{Status: kubeflowv1.JobStatus{StartTime: new(at(1)), Conditions: []kubeflowv1.JobCondition{yes(created, 0), yes(suspended, 1)}}}, 9,
			PhaseQueued, PhaseUndefined, "the newest True condition is Suspended, which this Flyte does not know"},
		{"an MPIJob that is suspended without a start time: only Flyte 1 waits",
			&kubeflowv1.MPIJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}, Spec: kubeflowv1.MPIJobSpec{RunPolicy: kubeflowv1.RunPolicy{Suspend: new(true)}}}, 61,
			PhaseQueued, PhaseError, "status.startTime is not set 1m1s after creation"},
		{"a pod is no job", &corev1.Pod{}, 9, PhaseError, PhaseError, "it is no PyTorchJob, no TFJob and no MPIJob"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := at(c.after).Time
			if got := ReadPhase(c.job, nil, now, Flyte1); got.Phase != c.v1 {
				t.Errorf("Flyte 1 reads %s (%s), want %s", got.Phase, got.Why, c.v1)
			}
			got := ReadPhase(c.job, nil, now, Flyte2)
			if got.Phase != c.v2 {
				t.Errorf("Flyte 2 reads %s (%s), want %s", got.Phase, got.Why, c.v2)
			}
			if diff := cmp.Diff(c.why, got.Why); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailureTextReachesTheUser(t *testing.T) {
	got := ReadPhase(pytorchJob(yes(kubeflowv1.JobFailed, 9)), nil, at(9).Time, Flyte2)
	want := Reading{PhaseRetryable, "DownstreamSystemError", "Job failed:\n\tPyTorchJobFailed - it is so", "the newest True condition is Failed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadPhaseOfWorker0(t *testing.T) {
	exited := func(code int32, reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "pytorch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}},
		}}}
	}
	evicted := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason}
	}
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{
			Phase:             corev1.PodPending,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(0)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "pytorch", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}},
		}
	}
	unscheduled := waiting("ImagePullBackOff")
	unscheduled.Conditions = append([]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}, unscheduled.Conditions...)
	for _, c := range []struct {
		name string
		// pod is the namespace and name.
		pod    string
		status corev1.PodStatus
		after  int
		want   Phase
		code   string
	}{
		{"an ordinary exit is taken for an interruption", "research/job-worker-0", exited(1, "Error"), 60, PhaseSystem, "Interrupted"},
		{"a kill is taken for an interruption", "research/job-worker-0", exited(137, "Error"), 60, PhaseSystem, "Interrupted"},
		{"out of memory is the user's", "research/job-worker-0", exited(137, "OOMKilled"), 60, PhaseRetryable, "OOMKilled"},
		{"an eviction is the user's", "research/job-worker-0", evicted("Evicted"), 60, PhaseRetryable, "Evicted"},
		{"a node that shuts down is not", "research/job-worker-0", evicted("Shutdown"), 60, PhaseSystem, "Interrupted"},
		{"an image name that is none", "research/job-worker-0", waiting("InvalidImageName"), 5, PhasePermanent, "InvalidImageName"},
		{"a missing secret", "research/job-worker-0", waiting("CreateContainerConfigError"), 5, PhasePermanent, "CreateContainerConfigError"},
		{"an image that does not come, at first", "research/job-worker-0", waiting("ImagePullBackOff"), 179, PhaseRunning, ""},
		{"an image that does not come for three minutes", "research/job-worker-0", waiting("ImagePullBackOff"), 180, PhaseRetryable, "ImagePullBackOff"},
		{"a container that is not made, at first", "research/job-worker-0", waiting("CreateContainerError"), 179, PhaseRunning, ""},
		{"a container that is not made for three minutes", "research/job-worker-0", waiting("CreateContainerError"), 180, PhasePermanent, "CreateContainerError"},
		{"a container that is being made", "research/job-worker-0", waiting("ContainerCreating"), 600, PhaseRunning, ""},
		{"a wait of another kind", "research/job-worker-0", waiting("RunContainerError"), 5, PhaseSystem, "RunContainerError"},
		{"a pod without a node", "research/job-worker-0", unscheduled, 600, PhaseRunning, ""},
		{"a pod that just came", "research/job-worker-0", corev1.PodStatus{Phase: corev1.PodPending}, 600, PhaseRunning, ""},
		{"a pod that runs", "research/job-worker-0", corev1.PodStatus{Phase: corev1.PodRunning}, 600, PhaseRunning, ""},
		{"another worker is not looked at", "research/job-worker-1", exited(1, "Error"), 60, PhaseRunning, ""},
		{"another namespace is not looked at", "development/job-worker-0", exited(1, "Error"), 60, PhaseRunning, ""},
		{"another job is not looked at", "research/job-10-worker-0", exited(1, "Error"), 60, PhaseRunning, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			namespace, name, _ := strings.Cut(c.pod, "/")
			pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: c.status}}
			job := pytorchJob(yes(kubeflowv1.JobCreated, 0), yes(kubeflowv1.JobRunning, 1))
			now := at(c.after).Time
			got := ReadPhase(job, pods, now, Flyte2)
			if got.Phase != c.want || got.Code != c.code {
				t.Errorf("Flyte 2 reads %s %s (%s), want %s %s", got.Phase, got.Code, got.Why, c.want, c.code)
			}
			if got := ReadPhase(job, pods, now, Flyte1); got.Phase != PhaseRunning {
				t.Errorf("Flyte 1, which does not look at pods, reads %s (%s)", got.Phase, got.Why)
			}
		})
	}
}
