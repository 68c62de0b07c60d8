package controller_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// roles are the replica specs of a kubeflow.org job.
type roles = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec

// running is a role whose replicas run a shell script. Both kinds take its container for the one that trains.
func running(replicas int32, script string) *kubeflowv1.ReplicaSpec {
	return &kubeflowv1.ReplicaSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers:                    []corev1.Container{{Name: "train", Image: "none", Command: []string{"sh", "-c", script}}},
	}}}
}

// gang is a PyTorchJob with a Master and Workers that all run a shell script.
func gang(workers int32, script string, changes ...func(*kubeflowv1.PyTorchJob)) *kubeflowv1.PyTorchJob {
	return pytorch(roles{"Master": running(1, script), "Worker": running(workers, script)}, changes...)
}

func pytorch(specs roles, changes ...func(*kubeflowv1.PyTorchJob)) *kubeflowv1.PyTorchJob {
	pj := &kubeflowv1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	pj.Spec.PyTorchReplicaSpecs = specs
	for _, change := range changes {
		change(pj)
	}
	return pj
}

func tensorflow(specs roles, changes ...func(*kubeflowv1.TFJob)) *kubeflowv1.TFJob {
	tf := &kubeflowv1.TFJob{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	tf.Spec.TFReplicaSpecs = specs
	for _, change := range changes {
		change(tf)
	}
	return tf
}

// policyOf is the run policy of a kubeflow.org job, specsOf are its roles. statusOf is the status of a job of any kind.
func policyOf(obj client.Object) *kubeflowv1.RunPolicy { return obj.(kubeflowv1.Job).Parts().RunPolicy }

func specsOf(obj client.Object) roles { return *obj.(kubeflowv1.Job).Parts().ReplicaSpecs }

func statusOf(obj client.Object) kubeflowv1.JobStatus {
	if tj, ok := obj.(*trainer.TrainJob); ok {
		s := tj.Status
		return kubeflowv1.JobStatus{
			Conditions: s.States, ReplicaStatuses: s.ReplicaStatuses, StartTime: s.StartTime, CompletionTime: s.CompletionTime, RunStatus: s.RunStatus,
		}
	}
	return *obj.(kubeflowv1.Job).Parts().Status
}

// training is a job that was submitted.
type training struct {
	*world
	name  string
	empty client.Object // of the job's kind
}

func (w *world) submit(obj client.Object) *training {
	w.Helper()
	j := &training{world: w, name: obj.GetName(), empty: reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)}
	obj.SetNamespace(w.Namespace)
	if err := w.client.Create(context.Background(), obj); err != nil {
		w.Fatal(err)
	}
	return j
}

// lives submits a job and returns every status that was recorded of it until its verdict, in their order. Each is shown when
// it comes.
func (w *world) lives(obj client.Object, show func(kubeflowv1.JobStatus)) (*training, []kubeflowv1.JobStatus) {
	w.Helper()
	j := w.submit(obj)
	watcher, err := client.NewWithWatch(w.Config, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*local.Timeout)
	defer cancel()
	var lived []kubeflowv1.JobStatus
	seen := obj.GetResourceVersion()
	w.Eventually("job "+j.name+" comes to its verdict", func() error { // a watch may end before
		stream, err := watcher.Watch(ctx, &kubeflowv1.PyTorchJobList{}, client.InNamespace(w.Namespace), client.MatchingFields{"metadata.name": j.name},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: seen}})
		if err != nil {
			return err
		}
		defer stream.Stop()
		for e := range stream.ResultChan() {
			job, ok := e.Object.(client.Object)
			if !ok {
				return apierrors.FromObject(e.Object)
			}
			s := statusOf(job)
			show(s)
			seen, lived = job.GetResourceVersion(), append(lived, s)
			if s.CompletionTime != nil {
				return nil
			}
		}
		return fmt.Errorf("it has lived through %+v", lived)
	})
	return j, lived
}

func (j *training) get() (client.Object, error) {
	obj := j.empty.DeepCopyObject().(client.Object)
	return obj, j.client.Get(context.Background(), client.ObjectKey{Namespace: j.Namespace, Name: j.name}, obj)
}

// status is the job's status as it is now.
func (j *training) status() kubeflowv1.JobStatus {
	j.Helper()
	obj, err := j.get()
	if err != nil {
		j.Fatal(err)
	}
	return statusOf(obj)
}

// until waits until the job's status is as check wants it.
func (j *training) until(what string, check func(kubeflowv1.JobStatus) bool) kubeflowv1.JobStatus {
	j.Helper()
	var status kubeflowv1.JobStatus
	j.Eventually(fmt.Sprintf("job %s %s", j.name, what), func() error {
		if status = j.status(); check(status) {
			return nil
		}
		return fmt.Errorf("its status is\n%s", describe(status))
	})
	return status
}

// becomes waits until the job's newest condition is of the type. A verdict is not waited for when the other was given.
func (j *training) becomes(state kubeflowv1.JobConditionType) kubeflowv1.JobStatus {
	j.Helper()
	verdicts := []kubeflowv1.JobConditionType{kubeflowv1.JobSucceeded, kubeflowv1.JobFailed}
	s := j.until("becomes "+string(state), func(s kubeflowv1.JobStatus) bool {
		return newest(s).Type == state || slices.Contains(verdicts, newest(s).Type)
	})
	if newest(s).Type != state {
		j.Fatalf("job %s is to become %s: it is\n%s", j.name, state, describe(s))
	}
	return s
}

// edit changes the job as a person would.
func (j *training) edit(change func(client.Object)) {
	j.Helper()
	j.Eventually("editing job "+j.name, func() error {
		obj, err := j.get()
		if err != nil {
			return err
		}
		change(obj)
		return j.client.Update(context.Background(), obj)
	})
}

// pods are those of the job, by what follows its name.
func (j *training) pods() map[string]*corev1.Pod {
	j.Helper()
	list, err := j.Client.CoreV1().Pods(j.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: naming.LabelJobName + "=" + j.name})
	if err != nil {
		j.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[strings.TrimPrefix(list.Items[i].Name, j.name+"-")] = &list.Items[i]
	}
	return pods
}

// services are the names of those that belong to the job.
func (j *training) services() []string {
	j.Helper()
	list, err := j.Client.CoreV1().Services(j.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: naming.LabelJobName + "=" + j.name})
	if err != nil {
		j.Fatal(err)
	}
	var names []string
	for _, svc := range list.Items {
		names = append(names, svc.Name)
	}
	return names
}

// events are the reasons of those told about the job, with their types.
func (j *training) events() []string {
	j.Helper()
	list, err := j.Client.CoreV1().Events(j.Namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + j.name})
	if err != nil {
		j.Fatal(err)
	}
	var told []string
	for _, e := range list.Items {
		if strings.HasSuffix(e.InvolvedObject.Kind, "Job") { // a Service's endpoints have the same name, and events of their own
			told = append(told, e.Type+" "+e.Reason)
		}
	}
	return told
}

// newest is the last condition of the list, which the State column shows.
func newest(s kubeflowv1.JobStatus) kubeflowv1.JobCondition {
	if n := len(s.Conditions); n > 0 {
		return s.Conditions[n-1]
	}
	return kubeflowv1.JobCondition{}
}

func condition(s kubeflowv1.JobStatus, t kubeflowv1.JobConditionType) kubeflowv1.JobCondition {
	for _, c := range s.Conditions {
		if c.Type == t {
			return c
		}
	}
	return kubeflowv1.JobCondition{}
}

// describe is a status in lines that fit a failed test's output.
func describe(s kubeflowv1.JobStatus) string {
	var b strings.Builder
	for _, c := range s.Conditions {
		_, _ = fmt.Fprintf(&b, "  %s %s %s: %s\n", c.LastTransitionTime.Format(time.TimeOnly), c.Type, c.Status, c.Message)
	}
	_, _ = fmt.Fprintf(&b, "  attempt %d, %d retries, %d disruptions, ready %s, message %q\n", s.Attempt, s.Retries, s.Disruptions, s.Ready, s.Message)
	for role, r := range s.ReplicaStatuses {
		_, _ = fmt.Fprintf(&b, "  %s: %d active, %d succeeded, %d failed\n", role, r.Active, r.Succeeded, r.Failed)
	}
	return b.String()
}

// open lets scripts go on that wait for a file.
func open(t *testing.T, gate string) {
	t.Helper()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
