package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// lateness is what a timer may be late by: a second, and another that a busy machine takes.
const lateness = 2 * time.Second

// inTime checks that something came when it was due: never early, hardly late.
func (w *world) inTime(what string, due, came time.Time) {
	w.Helper()
	if late := came.Sub(due); late < 0 || late > lateness {
		w.Errorf("%s came %s after it was due", what, late)
	}
}

// notEarly checks what follows a write, which takes as long as it takes.
func (w *world) notEarly(what string, due, came time.Time) {
	w.Helper()
	if came.Before(due) {
		w.Errorf("%s came %s before it was due", what, due.Sub(came))
	}
}

func TestTheDeadlineIsKeptToTheSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, c := range []struct {
		sentence string
		seconds  int64
		job      client.Object
		meddle   func(j *training)
	}{
		{"though nothing else happens", 5, gang(1, "sleep 600"), nil},
		{"though the pods never restart", 5, gang(1, "sleep 600", func(pj *kubeflowv1.PyTorchJob) {
			for _, spec := range pj.Spec.PyTorchReplicaSpecs {
				spec.RestartPolicy = kubeflowv1.RestartPolicyNever
			}
		}), nil},
		{"though a pod cannot be placed", 5, gang(1, "sleep 600", func(pj *kubeflowv1.PyTorchJob) {
			pj.Spec.PyTorchReplicaSpecs["Worker"].Template.Spec.NodeSelector = map[string]string{"no": "where"}
		}), nil},
		{"though it waits out a restart delay", 8, gang(1, "exit 1"), nil},
		{"though it is set while the job runs", 600, gang(1, "sleep 600"), func(j *training) {
			j.becomes(kubeflowv1.JobRunning)
			j.edit(func(obj client.Object) {
				soon := int64(time.Since(statusOf(obj).StartTime.Time).Seconds()) + 5
				policyOf(obj).ActiveDeadlineSeconds = &soon
			})
		}},
	} {
		w.row(c.sentence, func(w *world) {
			c.job.SetName(fmt.Sprintf("row-%d", i))
			policyOf(c.job).ActiveDeadlineSeconds = &c.seconds
			j := w.submit(c.job)
			if c.meddle != nil {
				c.meddle(j)
			}
			s := j.becomes(kubeflowv1.JobFailed)
			obj, err := j.get()
			if err != nil {
				w.Fatal(err)
			}
			due := s.StartTime.Add(time.Duration(*policyOf(obj).ActiveDeadlineSeconds) * time.Second)
			w.inTime("the end", due, s.CompletionTime.Time)
			w.notEarly("the verdict", due, j.told("PyTorchJobFailed"))
			if !strings.Contains(newest(s).Message, "activeDeadlineSeconds") {
				w.Errorf("the message is %q", newest(s).Message)
			}
			j.comesToRest()
		})
	}
}

func TestTheDeadlineIsKeptByTheNextOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(1, "sleep 600", func(pj *kubeflowv1.PyTorchJob) { pj.Spec.RunPolicy.ActiveDeadlineSeconds = new(int64(30)) }))
	j.becomes(kubeflowv1.JobRunning)
	w.stop()
	w.operate()
	s := j.becomes(kubeflowv1.JobFailed)
	w.inTime("the end", s.StartTime.Add(30*time.Second), s.CompletionTime.Time)
	w.notEarly("the verdict", s.StartTime.Add(30*time.Second), j.told("PyTorchJobFailed"))
}

// told is when the operator told of something, to the microsecond: times in the status are rounded up to whole seconds,
// and would hide what comes too early.
func (j *training) told(reason string) time.Time {
	j.Helper()
	var at time.Time
	j.Eventually(reason+" is told", func() error {
		list, err := j.Client.EventsV1().Events(j.Namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Name == j.name {
				at = e.EventTime.Time
				return nil
			}
		}
		return fmt.Errorf("%d others are", len(list.Items))
	})
	return at
}

func TestTheTTLIsKeptToTheSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, c := range []struct {
		sentence string
		ttl      int32
		script   string
		verdict  kubeflowv1.JobConditionType
	}{
		{"a job that succeeded goes after three seconds", 3, "exit 0", kubeflowv1.JobSucceeded},
		{"a job that failed for good goes after three seconds", 3, "exit 1", kubeflowv1.JobFailed},
	} {
		w.row(c.sentence, func(w *world) {
			job := gang(1, c.script, func(pj *kubeflowv1.PyTorchJob) {
				pj.Spec.RunPolicy.TTLSecondsAfterFinished = &c.ttl
				for _, spec := range pj.Spec.PyTorchReplicaSpecs {
					spec.RestartPolicy = kubeflowv1.RestartPolicyExitCode
				}
			})
			job.Name = fmt.Sprintf("row-%d", i)
			j, lived := w.lives(job, func(kubeflowv1.JobStatus) {})
			s := lived[len(lived)-1]
			if newest(s).Type != c.verdict {
				w.Errorf("the status is\n%s", describe(s))
			}
			j.isGone()
			w.inTime("the deletion", s.CompletionTime.Add(time.Duration(c.ttl)*time.Second), w.deletion("pytorchjobs", j.name))
			w.Eventually("its pods follow", func() error {
				if n := len(j.pods()); n > 0 {
					return fmt.Errorf("%d pods are left", n)
				}
				return nil
			})
		})
	}
}

func TestAJobThatRanOutUnattendedIsDeletedByTheNextOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(gang(1, "true"))
	s := j.becomes(kubeflowv1.JobSucceeded)
	w.stop()
	w.Eventually("a second has passed", func() error {
		if time.Since(s.CompletionTime.Time) < time.Second {
			return fmt.Errorf("the job ended at %s", s.CompletionTime)
		}
		return nil
	})
	j.edit(func(obj client.Object) { policyOf(obj).TTLSecondsAfterFinished = new(int32(1)) })
	w.operate()
	j.isGone()
}

// isGone waits until the job is no more.
func (j *training) isGone() {
	j.Helper()
	j.Eventually("job "+j.name+" is gone", func() error {
		switch _, err := j.get(); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return errors.New("it is there")
		}
	})
}

// deletion is when the operator asked the API server to delete an object, by the API server's clock.
func (w *world) deletion(resource, name string) time.Time {
	w.Helper()
	var at metav1.MicroTime
	w.Eventually("the deletion of "+name+" is in the audit log", func() error {
		for _, r := range w.audited(operatorOf(w.Namespace)) {
			if r.Verb == "delete" && r.ObjectRef.Resource == resource && r.ObjectRef.Name == name {
				at = r.RequestReceivedTimestamp
				return nil
			}
		}
		return context.DeadlineExceeded
	})
	return at.Time
}
