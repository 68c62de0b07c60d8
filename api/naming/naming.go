// Package naming has the names by which everyone finds the pods of a job and the container that trains in them: the operator, its
// tools, and clients. All but the attempt are those of Training Operator 1.9, so that its pods and ours can be read in the same way.
package naming

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels that every pod and Service of a job carries.
const (
	// LabelOperatorName names the controller that created the object; see [OperatorName].
	LabelOperatorName = "training.kubeflow.org/operator-name"
	// LabelJobName is the name of the job.
	LabelJobName = "training.kubeflow.org/job-name"
	// LabelReplicaType is the role in lower case, e.g. worker.
	LabelReplicaType = "training.kubeflow.org/replica-type"
	// LabelReplicaIndex is the index of the replica within its role, from 0.
	LabelReplicaIndex = "training.kubeflow.org/replica-index"
	// LabelJobRole is "master" on the pod that leads the job, and absent on the others.
	LabelJobRole = "training.kubeflow.org/job-role"
	// LabelAttempt is the number of the attempt a pod belongs to, from 0. A pod without it belongs to attempt 0.
	LabelAttempt = "trainyard.dev/attempt"
)

// OperatorName is the value of LabelOperatorName for jobs of a kind, e.g. pytorchjob-controller. Pods of MPIJobs have that of
// mpi-operator, because Kueue finds them by it.
func OperatorName(kind string) string {
	if kind == "MPIJob" {
		return "mpi-operator"
	}
	return strings.ToLower(kind) + "-controller"
}

// IsGPU reports whether a resource is a GPU by its name, as Training Operator and Trainer decide it.
func IsGPU(resource corev1.ResourceName) bool {
	return strings.Contains(strings.ToLower(string(resource)), "gpu")
}

// TrainingContainer is the container by which a pod is judged: the one that has the name its kind gives it, else the first, nil
// if there is none.
func TrainingContainer(pod *corev1.PodSpec, name string) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	if len(pod.Containers) == 0 {
		return nil
	}
	return &pod.Containers[0]
}
