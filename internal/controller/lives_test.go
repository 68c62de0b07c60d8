package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// gang is a PyTorchJob with a Master and Workers that all run a shell script.
func gang(workers int32, script string, changes ...func(*kubeflowv1.PyTorchJob)) *kubeflowv1.PyTorchJob {
	role := func(replicas int32) *kubeflowv1.ReplicaSpec {
		return &kubeflowv1.ReplicaSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "pytorch", Image: "none", Command: []string{"sh", "-c", script}}},
		}}}
	}
	pj := &kubeflowv1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	pj.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Master": role(1), "Worker": role(workers)}
	for _, change := range changes {
		change(pj)
	}
	return pj
}

func (w *world) submit(pj *kubeflowv1.PyTorchJob) {
	w.Helper()
	pj.Namespace = w.Namespace
	if err := w.client.Create(context.Background(), pj); err != nil {
		w.Fatal(err)
	}
}

// until waits until the job's newest condition is of the type, and returns the job.
func (w *world) until(state kubeflowv1.JobConditionType) *kubeflowv1.PyTorchJob {
	w.Helper()
	pj := &kubeflowv1.PyTorchJob{}
	w.Eventually("the job is "+string(state), func() error {
		if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: "demo"}, pj); err != nil {
			return err
		}
		if n := len(pj.Status.Conditions); n == 0 || pj.Status.Conditions[n-1].Type != state {
			return fmt.Errorf("status: %+v", pj.Status)
		}
		return nil
	})
	return pj
}

func TestAJobSucceeds(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(1, `echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT, attempt $TRAINYARD_ATTEMPT`))
	w.until(kubeflowv1.JobSucceeded)
	if got := w.Logs("demo-master-0"); got != "0 of 2 at demo-master-0:23456, attempt 0\n" {
		t.Errorf("the master was told %q", got)
	}
	w.Eventually("the services are gone", func() error {
		list, err := w.Client.CoreV1().Services(w.Namespace).List(context.Background(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d services", len(list.Items))
		}
		return err
	})
}

func TestAGangIsRetriedAsOftenAsItMay(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(2, `test $RANK = 2 && echo no more && exit 3; sleep 600`, func(pj *kubeflowv1.PyTorchJob) {
		pj.Spec.RunPolicy.BackoffLimit = new(int32(1))
	}))
	pj := w.until(kubeflowv1.JobFailed)
	s := pj.Status
	if s.Retries != 1 || s.Attempt != 1 || len(s.Attempts) != 2 || s.LastFailure == nil || *s.LastFailure.ExitCode != 3 {
		t.Errorf("status: %+v", s)
	}
	message := s.Conditions[len(s.Conditions)-1].Message
	for _, word := range []string{"Worker 1", "demo-worker-1", "code 3", "backoffLimit 1", "no more"} {
		if !strings.Contains(message, word) {
			t.Errorf("%q does not say %q", message, word)
		}
	}
	w.Eventually("nothing runs any more", func() error {
		list, err := w.Client.CoreV1().Pods(w.Namespace).List(context.Background(), metav1.ListOptions{})
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning {
				return fmt.Errorf("%s runs", pod.Name)
			}
		}
		return err
	})
}

func TestTheDeadlineIsKeptToTheSecond(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(1, `sleep 600`, func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.ActiveDeadlineSeconds = new(int64(5)) }))
	pj := w.until(kubeflowv1.JobFailed)
	if took := pj.Status.CompletionTime.Sub(pj.Status.StartTime.Time); took < 5*time.Second || took > 6*time.Second {
		t.Errorf("ended after %s", took)
	}
}

func TestTheOperatorMayDieAtAnyTime(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(2, `test $RANK = 2 && test $TRAINYARD_ATTEMPT = 0 && exit 1; sleep 600`))
	w.until(kubeflowv1.JobRestarting)
	w.stop()
	w.operate()
	pj := w.until(kubeflowv1.JobRunning)
	if pj.Status.Retries != 1 || pj.Status.Attempt != 1 {
		t.Errorf("%d retries in attempt %d", pj.Status.Retries, pj.Status.Attempt)
	}
}

func TestAVanishedPodIsADisruption(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(1, `sleep 600`, func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.BackoffLimit = new(int32(0)) }))
	w.until(kubeflowv1.JobRunning)
	w.Kubectl("delete", "pod", "demo-worker-0", "--force", "--grace-period=0")
	w.Eventually("the job runs again", func() error {
		if s := w.until(kubeflowv1.JobRunning).Status; s.Attempt != 1 || s.Retries != 0 || s.Disruptions != 1 {
			return fmt.Errorf("attempt %d, %d retries, %d disruptions", s.Attempt, s.Retries, s.Disruptions)
		}
		return nil
	})
}

func TestARefusedTemplateEndsTheJob(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(1, `true`, func(pj *kubeflowv1.PyTorchJob) {
		pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "nowhere", MountPath: "/data"}}
	}))
	pj := w.until(kubeflowv1.JobFailed)
	if !strings.Contains(pj.Status.Message, "nowhere") {
		t.Errorf("the message is %q", pj.Status.Message)
	}
}

// edit changes the job as a person would, on its newest version.
func (w *world) edit(change func(*kubeflowv1.PyTorchJob)) {
	w.Helper()
	w.Eventually("the job is edited", func() error {
		pj := &kubeflowv1.PyTorchJob{}
		if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: "demo"}, pj); err != nil {
			return err
		}
		change(pj)
		return w.client.Update(context.Background(), pj)
	})
}

func TestSuspendAndResume(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(1, `sleep 600`))
	first := w.until(kubeflowv1.JobRunning)
	w.edit(func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.Suspend = new(true) })
	w.until(kubeflowv1.JobSuspended)
	w.Eventually("nothing is left", func() error {
		pods, err := w.Client.CoreV1().Pods(w.Namespace).List(context.Background(), metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods", len(pods.Items))
		}
		return err
	})
	w.edit(func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.Suspend = new(false) })
	again := w.until(kubeflowv1.JobRunning)
	if again.Status.Attempt != 1 || again.Status.Retries != 0 || !again.Status.StartTime.After(first.Status.StartTime.Time) {
		t.Errorf("attempt %d, %d retries, started %s after %s", again.Status.Attempt, again.Status.Retries, again.Status.StartTime, first.Status.StartTime)
	}
}

func TestTheTTLRemovesTheJobAndItsChildren(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(1, `true`, func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(2)) }))
	w.Eventually("everything is gone", func() error {
		pods, err := w.Client.CoreV1().Pods(w.Namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		err = w.client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: "demo"}, &kubeflowv1.PyTorchJob{})
		if len(pods.Items) > 0 || client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("%d pods; the job: %w", len(pods.Items), err)
		}
		return nil
	})
}

func TestAQuotaIsWaitedOut(t *testing.T) {
	w := newWorld(t)
	w.Kubectl("create", "quota", "few", "--hard=pods=1")
	w.Eventually("the quota is in force", func() error {
		quota, err := w.Client.CoreV1().ResourceQuotas(w.Namespace).Get(context.Background(), "few", metav1.GetOptions{})
		if err == nil && len(quota.Status.Hard) == 0 {
			err = fmt.Errorf("not yet")
		}
		return err
	})
	w.submit(gang(1, `sleep 600`))
	w.Eventually("the job says what it waits for", func() error {
		if s := w.until(kubeflowv1.JobCreated).Status; !strings.Contains(s.Message, "exceeded quota") {
			return fmt.Errorf("it says %q", s.Message)
		}
		return nil
	})
	w.Kubectl("delete", "quota", "few")
	if s := w.until(kubeflowv1.JobRunning).Status; s.Message != "" || s.Retries != 0 {
		t.Errorf("status: %+v", s)
	}
}

func TestANamesakeIsWaitedOut(t *testing.T) {
	w := newWorld(t)
	w.submit(gang(1, `trap '' TERM; sleep 600 & wait; wait`))
	old := w.until(kubeflowv1.JobRunning)
	if err := w.client.Delete(context.Background(), old, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	w.submit(gang(1, `true`))
	pj := w.until(kubeflowv1.JobSucceeded)
	if s := pj.Status; pj.UID == old.UID || s.Retries+s.Disruptions+s.Attempt != 0 {
		t.Errorf("status: %+v", s)
	}
}
