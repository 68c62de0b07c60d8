package yard

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
)

// ReplicaOf is the replica of a pod, as in worker-1, and its attempt.
func ReplicaOf(pod *corev1.Pod) (string, int32) {
	attempt, _ := strconv.ParseInt(pod.Labels[naming.LabelAttempt], 10, 32)
	return pod.Labels[naming.LabelReplicaType] + "-" + pod.Labels[naming.LabelReplicaIndex], int32(attempt)
}

// ContainerOf is the name of the container of a job's pod that trains.
func ContainerOf(j *Job, pod *corev1.Pod) string {
	for _, role := range j.Job.Roles {
		if strings.EqualFold(role.Name, pod.Labels[naming.LabelReplicaType]) {
			return job.TrainingContainer(pod.Spec, role.Container)
		}
	}
	return job.TrainingContainer(pod.Spec, "") // the roles are unknown
}
