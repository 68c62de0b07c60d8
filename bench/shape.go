package main

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// shape is how many jobs there are, and how many pods each has. A mix has jobs of several sizes, and mixed is all its pods.
type shape struct{ jobs, pods, mixed int }

// mixSizes are the sizes of jobs in a mix, and how many of sixteen parts of all pods are in jobs of that size: those of Kubernetes' own load
// tests.
var mixSizes = []struct{ pods, parts int }{{5, 8}, {20, 4}, {400, 4}}

func (s shape) String() string {
	if s.mixed > 0 {
		return fmt.Sprintf("mix of %d", s.mixed)
	}
	return fmt.Sprintf("%d×%d", s.jobs, s.pods)
}

// parseShape reads "100x4" and "mix3200".
func parseShape(text string) (shape, error) {
	text = strings.TrimSpace(text)
	if number, ok := strings.CutPrefix(text, "mix"); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n%1600 != 0 {
			return shape{}, fmt.Errorf("%q is no mix: write a multiple of 1600 pods, like mix3200", text)
		}
		s := shape{mixed: n}
		for _, size := range mixSizes {
			s.jobs += n * size.parts / 16 / size.pods
		}
		return s, nil
	}
	jobs, pods, _ := strings.Cut(text, "x")
	j, err := strconv.Atoi(jobs)
	p, podsErr := strconv.Atoi(pods)
	if err != nil || podsErr != nil || j < 1 || p < 2 {
		return shape{}, fmt.Errorf("%q is no shape: write jobs x pods, with at least 2 pods, like 100x4", text)
	}
	return shape{jobs: j, pods: p}, nil
}

// total is the number of all pods.
func (s shape) total() int {
	if s.mixed > 0 {
		return s.mixed
	}
	return s.jobs * s.pods
}

// size is the number of pods of one of the jobs.
func (s shape) size(n int) int {
	for _, size := range mixSizes {
		jobs := s.mixed * size.parts / 16 / size.pods
		if n < jobs {
			return size.pods
		}
		n -= jobs
	}
	return s.pods
}

// sizeOf is the number of pods of a job, by its name.
func (s shape) sizeOf(job string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(job, "job-"))
	return s.size(n)
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
	job.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Master": role(1), "Worker": role(int32(s.size(n) - 1))}
	return job
}
