package story

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/testing/golden"
)

var day = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// demo is a job of two Workers that was created an hour ago, with the difference that matters.
func demo(change func(*Story)) Story {
	s := Story{Created: day, Now: day.Add(time.Hour)}
	limit := int32(2)
	s.Job = job.Job{Kind: "PyTorchJob", Name: "demo", Scope: job.ScopeJob, Roles: []job.Role{{Name: "Worker", Replicas: 2}}, Policy: job.RunPolicy{BackoffLimit: &limit}}
	s.Status = job.Status{StartTime: day, Ready: "0/2", Attempts: []job.Attempt{{Start: day}}}
	s.becomes(job.Created, day, "PyTorchJob demo is created.")
	change(&s)
	return s
}

func (s *Story) becomes(t job.ConditionType, at time.Time, message string) {
	s.Status.Conditions = append(s.Status.Conditions, job.Condition{Type: t, Status: true, Message: message, LastTransition: at})
}

var killed = &job.Failure{
	Replica: job.Replica{Role: "Worker", Index: 1}, Pod: "demo-worker-1", Node: "n1", ExitCode: 137, Signal: 9, Reason: "Error",
	Message: "epoch 3\nloading", Class: job.Application,
}

// retried has run twice and failed for good.
func retried(s *Story) {
	s.Status.Attempt, s.Status.Retries, s.Status.LastFailure = 1, 1, killed
	s.Status.CompletionTime = day.Add(10 * time.Minute)
	s.Status.Attempts = []job.Attempt{
		{Number: 0, Start: day, End: day.Add(4 * time.Minute), Reason: job.ReasonRestarted, Message: killed.String() + "; retry 1 of 1"},
		{Number: 1, Start: day.Add(4 * time.Minute), End: day.Add(10 * time.Minute), Reason: job.ReasonBackoffLimit, Message: "failed: " + killed.String() + "; backoffLimit 1 is used up"},
	}
	s.becomes(job.Failed, day.Add(10*time.Minute), "PyTorchJob demo failed: "+killed.String()+"; backoffLimit 1 is used up; it last said: loading.")
}

// passed had ten minutes, and took a second more by the stored times.
func passed(s *Story, why string) {
	s.Job.Policy.ActiveDeadlineSeconds, s.Status.CompletionTime = new(int64(600)), day.Add(601*time.Second)
	s.Status.Attempts[0].End, s.Status.Attempts[0].Reason, s.Status.Attempts[0].Message = s.Status.CompletionTime, job.ReasonDeadlineExceeded, why
	s.becomes(job.Failed, s.Status.CompletionTime, "PyTorchJob demo "+why+".")
}

// TestStories shows what is said of jobs in every state: the live line, why, and the summary. It stands in testdata.
func TestStories(t *testing.T) {
	got := ""
	for _, row := range []struct {
		name   string
		change func(*Story)
	}{
		{"no operator has seen it", func(s *Story) { s.Status = job.Status{} }},
		{"it starts", func(s *Story) {
			s.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-0"}, Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}}
		}},
		{"it cannot be scheduled", func(s *Story) {
			s.Status.Message = "Worker 1 (pod demo-worker-1) waits: it cannot be scheduled: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
		}},
		{"a quota is in its way", func(s *Story) { s.Status.Message = "cannot create pod demo-worker-1: exceeded quota: pods=1" }},
		{"its image cannot be pulled", func(s *Story) {
			s.Status.Message = "Worker 0 (pod demo-worker-0) waits: the image train:2 of container pytorch cannot be pulled"
		}},
		{"its runtime is missing", func(s *Story) {
			s.Status.Attempts, s.Status.Message = nil, "the ClusterTrainingRuntime torch does not exist"
		}},
		{"it runs, with a deadline", func(s *Story) {
			s.Status.Ready, s.Job.Policy.ActiveDeadlineSeconds = "2/2", new(int64(7200))
			s.becomes(job.Running, day.Add(time.Minute), "")
		}},
		{"it waits to be restarted", func(s *Story) {
			s.Status.Attempt, s.Status.Retries, s.Status.LastFailure, s.Status.NotBefore = 2, 2, killed, s.Now.Add(8*time.Second)
			s.Status.Message = "the restart delay of retry 2 is not over"
			s.becomes(job.Restarting, s.Now, "")
		}},
		{"the attempt before is not over", func(s *Story) {
			s.Status.Attempt, s.Status.Disruptions, s.Status.LastFailure = 1, 1, &job.Failure{Replica: killed.Replica, Pod: killed.Pod, Class: job.Disruption, Reason: "Evicted"}
			s.Status.Attempts[0].End, s.Status.Attempts[0].Message = s.Now, s.Status.LastFailure.String()+"; not charged"
			s.Status.Attempts = append(s.Status.Attempts, job.Attempt{Number: 1, Start: s.Now})
			s.Status.Message = "the pods of the attempt before are stopping"
			s.becomes(job.Restarting, s.Now, "")
		}},
		{"a replica alone waits to be restarted", func(s *Story) {
			s.Job.Scope, s.Status.Ready, s.Status.Retries, s.Status.LastFailure = job.ScopeReplica, "1/2", 2, killed
			s.Status.Message = "Worker 1 (pod demo-worker-1) waits: its restart delay is not over"
			s.Status.Records = []job.Record{{Replica: killed.Replica, NotBefore: s.Now.Add(12 * time.Second)}, {Replica: job.Replica{Role: "Worker"}, NotBefore: s.Now.Add(time.Minute)}}
			s.becomes(job.Restarting, s.Now, "")
		}},
		{"the kubelet restarts its container after its own delay", func(s *Story) {
			s.Job.Scope, s.Status.Retries, s.Job.Policy.BackoffLimit = job.ScopeReplica, 1, nil
			s.Status.Message = "Worker 1 (pod demo-worker-1) waits: container pytorch keeps failing"
			s.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 20s restarting failed container=pytorch pod=demo-worker-1"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(s.Now.Add(-5 * time.Second))}},
			}}}}}
			s.becomes(job.Restarting, s.Now, "")
		}},
		{"the kubelet has not said yet when it restarts", func(s *Story) {
			s.Job.Scope, s.Status.Retries, s.Status.LastFailure = job.ScopeReplica, 2, killed
			s.Pods = []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Name: "demo-worker-1"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
					State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}},
				}}},
			}}
			s.becomes(job.Restarting, s.Now, "")
		}},
		{"it was suspended and runs again, which is not a retry", func(s *Story) {
			s.Status.Attempt, s.Status.Ready = 1, "2/2"
			s.Status.Attempts[0].End, s.Status.Attempts[0].Reason = day.Add(time.Minute), job.ReasonSuspended
			s.Status.Attempts = append(s.Status.Attempts, job.Attempt{Number: 1, Start: day.Add(30 * time.Minute)})
			s.becomes(job.Running, day.Add(31*time.Minute), "")
		}},
		{"it is being deleted", func(s *Story) {
			s.Job.Deleting = true
			s.becomes(job.Running, day.Add(31*time.Minute), "")
		}},
		{"it is suspended", func(s *Story) { s.becomes(job.Suspended, day.Add(30*time.Minute), "") }},
		{"Kueue has not admitted it", func(s *Story) {
			s.becomes(job.Suspended, day.Add(30*time.Minute), "")
			s.Kueue = "waits for Kueue: it is number 2 in the queue team; insufficient unused quota for cpu in flavor default, 3 more needed"
		}},
		{"it succeeded", func(s *Story) {
			s.Status.CompletionTime = day.Add(50 * time.Minute)
			s.becomes(job.Succeeded, s.Status.CompletionTime, "")
		}},
		{"it failed after a retry", retried},
		{"it failed twice, of different causes, elsewhere", func(s *Story) {
			retried(s)
			s.Status.Attempts[0].Message = "Worker 0 (pod demo-worker-0 on node n1) was OOMKilled; retry 1 of 1"
			s.TargetFlags = []string{"--context", "prod", "-n", "team"}
		}},
		{"it failed at once, with a long last word", func(s *Story) {
			banner := *killed
			banner.Message = "WARNING:torch.distributed.run:\n*****\nSetting OMP_NUM_THREADS\nValueError: no data"
			s.Status.LastFailure, s.Status.CompletionTime = &banner, day.Add(time.Minute)
			why := "failed: " + banner.String() + "; restartPolicy Never does not restart it"
			s.Status.Attempts[0].End, s.Status.Attempts[0].Reason, s.Status.Attempts[0].Message = day.Add(time.Minute), job.ReasonFailed, why
			s.becomes(job.Failed, day.Add(time.Minute), "PyTorchJob demo "+why+"; it last said: ValueError: no data.")
		}},
		{"it failed under another operator", func(s *Story) {
			s.Status.Attempts, s.Status.CompletionTime = nil, day.Add(time.Minute)
			s.becomes(job.Failed, day.Add(time.Minute), "PyTorchJob demo is failed because 1 Worker replica(s) failed.\nfor good")
		}},
		{"it was restarted in place until no retry was left", func(s *Story) {
			s.Job.Scope, s.Status.Retries, s.Status.LastFailure, s.Status.CompletionTime = job.ScopeReplica, 2, killed, day.Add(time.Minute)
			why := "failed: " + killed.String() + "; backoffLimit 2 is used up"
			s.Status.Attempts[0].End, s.Status.Attempts[0].Reason, s.Status.Attempts[0].Message = day.Add(time.Minute), job.ReasonBackoffLimit, why
			s.becomes(job.Failed, day.Add(time.Minute), "PyTorchJob demo "+why+"; it last said: loading.")
		}},
		{"it passed its deadline", func(s *Story) {
			passed(s, "failed: it was active longer than activeDeadlineSeconds 600 allows")
		}},
		{"it passed its deadline and never ran", func(s *Story) {
			passed(s, "failed: it was active longer than activeDeadlineSeconds 600 allows, and was not running: "+
				"Worker 1 (pod demo-worker-1) waits: it cannot be scheduled: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
		}},
	} {
		s := demo(row.change)
		got += fmt.Sprintf("# %s\nline: %s\nwhy: %s", row.name, s.Line(), s.Why())
		if s.Status.Finished() {
			got += "summary: " + s.Summary(nil)
		}
		got += "\n"
	}
	golden.Check(t, "testdata/stories.txt", got)
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 400 * time.Millisecond: "0s", 45 * time.Second: "45s", 200 * time.Second: "3m20s", time.Hour: "1h",
		125 * time.Minute: "2h5m", 99 * time.Hour: "4d3h", 72 * time.Hour: "3d",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestScaled(t *testing.T) {
	sizes := func(chief, worker int32) job.Status {
		return job.Status{Roles: []job.RoleStatus{{Role: "Chief", Size: chief}, {Role: "Worker", Size: worker}}}
	}
	for _, row := range []struct {
		sentence string
		was, is  job.Status
		want     string
	}{
		{"a job that has just begun is not scaled", job.Status{}, sizes(1, 3), ""},
		{"nor is one that stays as it is", sizes(1, 3), sizes(1, 3), ""},
		{"one that is names the role", sizes(1, 3), sizes(1, 2), "Worker from 3 to 2"},
		{"or the roles", sizes(1, 3), sizes(0, 4), "Chief from 1 to 0, Worker from 3 to 4"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := Scaled(row.was, row.is); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
