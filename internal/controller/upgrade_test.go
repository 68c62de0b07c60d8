package controller_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
)

// A job that Training Operator 1.9 started, with its pods and a Service for each of them, goes on under ours as if nothing
// had happened, and ends as any other.
func TestARunningJobOfTrainingOperatorIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sentence  string
		policy    kubeflowv1.RestartPolicy
		worker    string // does
		retries   int32
		restarted bool // by us
	}{
		{"and succeeds", kubeflowv1.RestartPolicyOnFailure, "true", 0, false},
		{"and a worker that the kubelet restarts is charged", kubeflowv1.RestartPolicyOnFailure, "exit 1", 1, false},
		{"and restarts as a gang when a worker falls for good", kubeflowv1.RestartPolicyExitCode, "exit 137", 1, true},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			t.Parallel()
			w := withoutOperator(t)
			dir := t.TempDir()
			wait := func(gate string) string {
				return fmt.Sprintf(`until test -f %s; do sleep 0.1; done; `, filepath.Join(dir, gate))
			}
			job := pytorch(roles{"Master": running(1, wait("master")), "Worker": running(1, wait("worker")+failing(t, c.worker))})
			for _, spec := range job.Spec.PyTorchReplicaSpecs {
				spec.RestartPolicy = c.policy
			}
			j := w.submit(job)
			w.asTrainingOperatorLeftIt(job)
			before, start := j.uids(), j.status().StartTime
			w.operate()
			s := j.until("is ours", func(s kubeflowv1.JobStatus) bool { return s.Ready == "2/2" })
			w.waitForAnotherPass("after")
			for name, uid := range j.uids() {
				if before[name] != uid {
					t.Errorf("%s was restarted", name)
				}
			}
			if s.Restarts != 0 || s.Attempt != 0 || newest(s).Type != kubeflowv1.JobRunning || !s.StartTime.Equal(start) {
				t.Errorf("it started at %s, and the status is\n%s", s.StartTime, describe(s))
			}
			open(t, filepath.Join(dir, "worker"))
			j.until("runs", func(s kubeflowv1.JobStatus) bool {
				return s.Retries == c.retries && newest(s).Type == kubeflowv1.JobRunning
			})
			open(t, filepath.Join(dir, "master"))
			if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries != c.retries || s.Disruptions != 0 || (s.Attempt == 1) != c.restarted {
				t.Errorf("the status is\n%s", describe(s))
			}
			j.comesToRest()
			w.Eventually("its Services are gone", func() error {
				if names := j.services(); len(names) > 0 {
					return fmt.Errorf("there are %q", names)
				}
				return nil
			})
		})
	}
}

// A job that had ended under Training Operator 1.9 stays as it is, though its pods are gone; one that it ended without
// saying when is still removed after its TTL.
func TestAFinishedJobOfTrainingOperatorStaysFinished(t *testing.T) {
	t.Parallel()
	w := withoutOperator(t)
	ended := func(name string, state kubeflowv1.JobConditionType, completed *metav1.Time, ttl *int32) *training {
		job := gang(1, "sleep 600", func(pj *kubeflowv1.PyTorchJob) {
			pj.Name, pj.Spec.RunPolicy.TTLSecondsAfterFinished = name, ttl
		})
		j := w.submit(job)
		job.Status.StartTime, job.Status.CompletionTime = earlier(2*time.Hour), completed
		job.Status.Conditions = []kubeflowv1.JobCondition{said("Created", 2*time.Hour), said(state, time.Hour)}
		if err := w.client.Status().Update(context.Background(), job); err != nil {
			t.Fatal(err)
		}
		return j
	}
	kept := ended("kept", kubeflowv1.JobSucceeded, earlier(time.Hour), nil)
	expired := ended("expired", kubeflowv1.JobFailed, earlier(time.Hour), new(int32(60)))
	undated := ended("undated", kubeflowv1.JobFailed, nil, new(int32(60)))
	w.operate()
	expired.isGone()
	undated.isGone()
	w.waitForAnotherPass("after")
	if s := kept.status(); newest(s).Type != kubeflowv1.JobSucceeded || len(kept.pods()) > 0 {
		t.Errorf("%d pods, and the status is\n%s", len(kept.pods()), describe(s))
	}
}

func earlier(ago time.Duration) *metav1.Time {
	at := metav1.NewTime(time.Now().Add(-ago).Truncate(time.Second))
	return &at
}

// said is a condition as Training Operator writes it.
func said(state kubeflowv1.JobConditionType, ago time.Duration) kubeflowv1.JobCondition {
	return kubeflowv1.JobCondition{
		Type: state, Status: corev1.ConditionTrue, Reason: "PyTorchJob" + string(state), Message: "PyTorchJob demo is " + string(state) + ".",
		LastUpdateTime: *earlier(ago), LastTransitionTime: *earlier(ago),
	}
}

// asTrainingOperatorLeftIt makes the pods, Services and status that Training Operator 1.9 makes for a job, and waits until
// the pods run.
func (w *world) asTrainingOperatorLeftIt(job *kubeflowv1.PyTorchJob) {
	w.Helper()
	yes, ctx := true, context.Background()
	owner := metav1.OwnerReference{
		APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Name: job.Name, UID: job.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	}
	for role, spec := range map[string]*kubeflowv1.ReplicaSpec{"master": job.Spec.PyTorchReplicaSpecs["Master"], "worker": job.Spec.PyTorchReplicaSpecs["Worker"]} {
		labels := map[string]string{
			naming.LabelOperatorName: "pytorchjob-controller", naming.LabelJobName: job.Name,
			naming.LabelReplicaType: role, naming.LabelReplicaIndex: "0",
		}
		meta := metav1.ObjectMeta{Name: job.Name + "-" + role + "-0", Namespace: w.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}}
		service := &corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: []corev1.ServicePort{{Name: "pytorchjob-port", Port: 23456}},
		}}
		pod := &corev1.Pod{ObjectMeta: meta, Spec: *spec.Template.Spec.DeepCopy()}
		if pod.Spec.RestartPolicy = corev1.RestartPolicyNever; spec.RestartPolicy != kubeflowv1.RestartPolicyExitCode {
			pod.Spec.RestartPolicy = corev1.RestartPolicy(spec.RestartPolicy)
		}
		if role == "master" {
			pod.Labels = map[string]string{naming.LabelJobRole: "master"}
			for key, value := range labels {
				pod.Labels[key] = value
			}
		}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WORLD_SIZE", Value: strconv.Itoa(2)}}
		for _, child := range []client.Object{service, pod} {
			if err := w.client.Create(ctx, child); err != nil {
				w.Fatal(err)
			}
		}
		w.UntilPhase(pod.Name, corev1.PodRunning)
	}
	job.Status.StartTime = earlier(time.Minute)
	job.Status.Conditions = []kubeflowv1.JobCondition{said("Created", time.Minute), said("Running", 50*time.Second)}
	job.Status.ReplicaStatuses = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaStatus{
		"Master": {Active: 1, Selector: "training.kubeflow.org/job-name=demo"}, "Worker": {Active: 1},
	}
	if err := w.client.Status().Update(ctx, job); err != nil {
		w.Fatal(err)
	}
}
