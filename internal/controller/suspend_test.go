package controller_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

func suspended(yes bool) func(client.Object) {
	return func(obj client.Object) { policyOf(obj).Suspend = &yes }
}

// A suspended job has no pods, no services and no deadline; resumed it starts anew, with the retries it has used up.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(1, failing(t, "exit 1")))
	before := j.until("runs after a retry", func(s kubeflowv1.JobStatus) bool {
		return s.Retries == 1 && newest(s).Type == kubeflowv1.JobRunning
	})
	j.edit(suspended(true))
	s := j.becomes(kubeflowv1.JobSuspended)
	if c := condition(s, kubeflowv1.JobRunning); c.Status != corev1.ConditionFalse || condition(s, kubeflowv1.JobRestarting).Type != "" {
		t.Errorf("the status is\n%s", describe(s))
	}
	w.Eventually("everything is gone", func() error {
		if pods, services := j.pods(), j.services(); len(pods)+len(services) > 0 {
			return fmt.Errorf("%d pods and services %q", len(pods), services)
		}
		return nil
	})
	j.edit(suspended(false))
	s = j.until("runs again", func(s kubeflowv1.JobStatus) bool { return newest(s).Type == kubeflowv1.JobRunning })
	if !s.StartTime.After(before.StartTime.Time) || s.Retries != 1 || condition(s, kubeflowv1.JobSuspended).Status != corev1.ConditionFalse {
		t.Errorf("it started at %s, then at %s, and the status is\n%s", before.StartTime, s.StartTime, describe(s))
	}
}

// While a job waits in suspension no time counts, and neither does anything else.
func TestAJobCreatedSuspendedWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := gang(1, "true")
	suspended(true)(job)
	job.Spec.RunPolicy.ActiveDeadlineSeconds, job.Spec.RunPolicy.TTLSecondsAfterFinished = new(int64(600)), new(int32(600))
	j := w.submit(job)
	before := j.becomes(kubeflowv1.JobSuspended)
	if len(before.Attempts) > 0 || len(j.pods())+len(j.services()) > 0 {
		t.Errorf("it has begun: %s, %d pods", describe(before), len(j.pods()))
	}
	j.edit(suspended(false))
	if s := j.becomes(kubeflowv1.JobSucceeded); s.StartTime.Before(before.StartTime) || len(s.Attempts) != 1 {
		t.Errorf("it started at %s, then at %s, and the status is\n%s", before.StartTime, s.StartTime, describe(s))
	}
}

// A job that another controller manages is not touched, not even its status.
func TestAJobManagedByAnotherIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	others := gang(1, "true", func(pj *kubeflowv1.PyTorchJob) {
		pj.Name, pj.Spec.RunPolicy.ManagedBy = "theirs", new(kubeflowv1.ManagedByMultiKueue)
	})
	theirs := w.submit(others)
	ours := w.submit(gang(1, "true", func(pj *kubeflowv1.PyTorchJob) {
		pj.Spec.RunPolicy.ManagedBy = new(kubeflowv1.ManagedByTrainingOperator)
	}))
	ours.becomes(kubeflowv1.JobSucceeded)
	if s := theirs.status(); len(s.Conditions) > 0 || s.StartTime != nil || len(theirs.pods())+len(theirs.services()) > 0 {
		t.Errorf("it was touched:\n%s", describe(s))
	}
	if n := w.requestsAbout("theirs"); len(n) > 0 {
		t.Errorf("it led to requests: %v", n)
	}
	err := w.client.Get(t.Context(), client.ObjectKeyFromObject(others), others)
	if others.Spec.RunPolicy.ManagedBy = new(kubeflowv1.ManagedByTrainingOperator); err == nil {
		err = w.client.Update(t.Context(), others)
	}
	if err == nil {
		t.Errorf("managedBy could be changed")
	}
}
