package controller_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	theirs "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// theirJobs are the jobs of one kind, by the clientset of Training Operator 1.9.4.
type theirJobs[J client.Object] interface {
	Create(context.Context, J, metav1.CreateOptions) (J, error)
	Get(context.Context, string, metav1.GetOptions) (J, error)
	Update(context.Context, J, metav1.UpdateOptions) (J, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (J, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// Every kind can be used with Training Operator's types and clientset. PyTorchJobs and TFJobs have a test of their own.
func TestTheClientsetOfTrainingOperatorReadsAndWritesEveryKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clientset, err := versioned.NewForConfig(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	jobs := clientset.KubeflowV1()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: w.Namespace} }
	w.row("JAXJob", func(w *world) {
		served(w, jobs.JAXJobs(w.Namespace), &theirs.JAXJob{ObjectMeta: meta("jax"), Spec: theirs.JAXJobSpec{
			RunPolicy: theirPolicy(), JAXReplicaSpecs: theirRoles("jax", theirs.JAXJobReplicaTypeWorker),
		}}, func(j *theirs.JAXJob) (*theirs.RunPolicy, *theirs.JobStatus) { return &j.Spec.RunPolicy, &j.Status })
	})
	w.row("XGBoostJob", func(w *world) {
		served(w, jobs.XGBoostJobs(w.Namespace), &theirs.XGBoostJob{ObjectMeta: meta("xgboost"), Spec: theirs.XGBoostJobSpec{
			RunPolicy: theirPolicy(), XGBReplicaSpecs: theirRoles("xgboost", theirs.XGBoostJobReplicaTypeMaster, theirs.XGBoostJobReplicaTypeWorker),
		}}, func(j *theirs.XGBoostJob) (*theirs.RunPolicy, *theirs.JobStatus) { return &j.Spec.RunPolicy, &j.Status })
	})
	w.row("PaddleJob", func(w *world) {
		served(w, jobs.PaddleJobs(w.Namespace), &theirs.PaddleJob{ObjectMeta: meta("paddle"), Spec: theirs.PaddleJobSpec{
			RunPolicy: theirPolicy(), PaddleReplicaSpecs: theirRoles("paddle", theirs.PaddleJobReplicaTypeWorker),
		}}, func(j *theirs.PaddleJob) (*theirs.RunPolicy, *theirs.JobStatus) { return &j.Spec.RunPolicy, &j.Status })
	})
	w.row("MPIJob", func(w *world) {
		specs := theirRoles("mpi", theirs.MPIJobReplicaTypeLauncher, theirs.MPIJobReplicaTypeWorker)
		specs[theirs.MPIJobReplicaTypeWorker].Template.Spec.Containers[0].Command = nil // it serves mpirun
		served(w, jobs.MPIJobs(w.Namespace), &theirs.MPIJob{ObjectMeta: meta("mpi"), Spec: theirs.MPIJobSpec{
			RunPolicy: theirPolicy(), MPIReplicaSpecs: specs,
		}}, func(j *theirs.MPIJob) (*theirs.RunPolicy, *theirs.JobStatus) { return &j.Spec.RunPolicy, &j.Status })
	})
}

// theirPolicy is that of a job which is created suspended.
func theirPolicy() theirs.RunPolicy {
	return theirs.RunPolicy{Suspend: new(true), BackoffLimit: new(int32(0)), CleanPodPolicy: new(theirs.CleanPodPolicyAll), TTLSecondsAfterFinished: new(int32(3600))}
}

func theirRoles(container string, names ...theirs.ReplicaType) map[theirs.ReplicaType]*theirs.ReplicaSpec {
	specs := map[theirs.ReplicaType]*theirs.ReplicaSpec{}
	for _, name := range names {
		specs[name] = &theirs.ReplicaSpec{Replicas: new(int32(1)), RestartPolicy: theirs.RestartPolicyNever, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "none", Command: []string{"true"}}}},
		}}
	}
	return specs
}

// served takes a job through everything that a client does with one: it is created suspended, edited, resumed, watched to its end,
// read and deleted.
func served[J client.Object](w *world, jobs theirJobs[J], job J, parts func(J) (*theirs.RunPolicy, *theirs.JobStatus)) {
	w.Helper()
	created, err := jobs.Create(w.t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	name := created.GetName()
	awaits(w, jobs, created, func(j J) bool { _, s := parts(j); return holds(s, theirs.JobSuspended) })
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the operator writes the status at the same time
		got, err := jobs.Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		policy, _ := parts(got)
		policy.ActiveDeadlineSeconds = new(int64(600))
		_, err = jobs.Update(w.t.Context(), got, metav1.UpdateOptions{})
		return err
	}); err != nil {
		w.Fatalf("editing it: %v", err)
	}
	resumed, err := jobs.Patch(w.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"runPolicy":{"suspend":false}}}`), metav1.PatchOptions{})
	if err != nil {
		w.Fatal(err)
	}
	ended := awaits(w, jobs, resumed, func(j J) bool { _, s := parts(j); return holds(s, theirs.JobSucceeded) })
	policy, status := parts(ended)
	if policy.ActiveDeadlineSeconds == nil || *policy.ActiveDeadlineSeconds != 600 {
		w.Errorf("it reads the run policy %+v, without the deadline that it has written", policy)
	}
	if status.Conditions[0].Type != theirs.JobCreated || status.StartTime == nil || status.CompletionTime == nil {
		w.Errorf("it reads the status %+v", status)
	}
	for role, replicas := range status.ReplicaStatuses {
		if replicas.Succeeded+replicas.Active+replicas.Failed > 1 || replicas.Selector == "" {
			w.Errorf("it reads of role %s %+v", role, replicas)
		}
	}
	if err := jobs.Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Errorf("deleting it: %v", err)
	}
	w.Eventually("it is gone", func() error {
		if _, err := jobs.Get(w.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// awaits watches a job from a version on until it is as it should be.
func awaits[J client.Object](w *world, jobs theirJobs[J], from J, is func(J) bool) J {
	w.Helper()
	if is(from) {
		return from
	}
	watcher, err := jobs.Watch(w.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + from.GetName(), ResourceVersion: from.GetResourceVersion()})
	if err != nil {
		w.Fatal(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if job, ok := event.Object.(J); ok && is(job) {
			return job
		}
	}
	w.Fatalf("the watch of %s ended", from.GetName())
	return from
}

func holds(s *theirs.JobStatus, t theirs.JobConditionType) bool {
	return slices.ContainsFunc(s.Conditions, func(c theirs.JobCondition) bool { return c.Type == t && c.Status == corev1.ConditionTrue })
}
