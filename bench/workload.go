package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainerv1 "github.com/trainyard/trainyard/api/trainer/v1alpha1"
)

// workload is a kind of jobs that contenders run.
type workload struct {
	job  func(s shape, namespace string, n int) client.Object
	list func() client.ObjectList
	// running says that a job's status calls it running; nil where no status does, and it runs when all its pods run.
	running   func(client.Object) bool
	succeeded func(client.Object) bool
}

var pytorchJobs = workload{
	job:       func(s shape, namespace string, n int) client.Object { return s.job(namespace, n) },
	list:      func() client.ObjectList { return &kubeflowv1.PyTorchJobList{} },
	running:   func(obj client.Object) bool { return is(obj, kubeflowv1.JobRunning) },
	succeeded: func(obj client.Object) bool { return is(obj, kubeflowv1.JobSucceeded) },
}

func is(obj client.Object, state kubeflowv1.JobConditionType) bool {
	return slices.ContainsFunc(obj.(*kubeflowv1.PyTorchJob).Status.Conditions, func(c kubeflowv1.JobCondition) bool {
		return c.Type == state && c.Status == corev1.ConditionTrue
	})
}

var trainJobs = workload{
	job: func(s shape, namespace string, n int) client.Object {
		nodes := int32(s.size(n))
		job := &trainerv1.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%d", n)}}
		job.Spec.RuntimeRef.Name = runtimeName
		job.Spec.Trainer = &trainerv1.Trainer{NumNodes: &nodes}
		return job
	},
	list: func() client.ObjectList { return &trainerv1.TrainJobList{} },
	succeeded: func(obj client.Object) bool {
		return meta.IsStatusConditionTrue(obj.(*trainerv1.TrainJob).Status.Conditions, trainerv1.TrainJobComplete)
	},
}

// jobOf is the name of a pod's job. Trainer's pods belong to a Job of a JobSet that is called like the TrainJob.
func jobOf(pod *corev1.Pod) string {
	if name := pod.Labels["jobset.sigs.k8s.io/jobset-name"]; name != "" {
		return name
	}
	return metav1.GetControllerOf(pod).Name
}
