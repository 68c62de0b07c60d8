package main

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// shape is how many jobs there are, and how many pods each has.
type shape struct{ jobs, pods int }

func (s shape) String() string { return fmt.Sprintf("%d×%d", s.jobs, s.pods) }

// parseShape reads "100x4".
func parseShape(text string) (shape, error) {
	jobs, pods, _ := strings.Cut(strings.TrimSpace(text), "x")
	j, err := strconv.Atoi(jobs)
	p, podsErr := strconv.Atoi(pods)
	if err != nil || podsErr != nil || j < 1 || p < 2 {
		return shape{}, fmt.Errorf("%q is no shape: write jobs x pods, with at least 2 pods, like 100x4", text)
	}
	return shape{j, p}, nil
}

// job is one of the shape's jobs: a PyTorchJob with a Master and Workers.
func (s shape) job(namespace string, n int) *kubeflowv1.PyTorchJob {
	job := &kubeflowv1.PyTorchJob{}
	job.Namespace, job.Name = namespace, fmt.Sprintf("job-%d", n)
	role := func(replicas int32) *kubeflowv1.ReplicaSpec {
		return &kubeflowv1.ReplicaSpec{Replicas: &replicas, RestartPolicy: kubeflowv1.RestartPolicyExitCode, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "pytorch", Image: "train", Command: []string{"train"}}},
		}}}
	}
	job.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Master": role(1), "Worker": role(int32(s.pods - 1))}
	return job
}
