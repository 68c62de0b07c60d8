package trainjob

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// jax makes the first node the coordinator, and sets the variables that jax.distributed.initialize reads.
func jax(m *manifest.Manifest, _ *trainer.TrainingRuntimeSpec, _ *trainer.TrainJob) error {
	meet(m, func(r job.Replica) []corev1.EnvVar {
		return []corev1.EnvVar{
			{Name: "JAX_NUM_PROCESSES", Value: strconv.Itoa(int(m.Size(m.Leader.Role)))},
			{Name: "JAX_PROCESS_ID", Value: strconv.Itoa(int(r.Index))},
			{Name: "JAX_COORDINATOR_ADDRESS", Value: m.Job.PodName(m.Leader) + ":" + strconv.Itoa(int(trainer.TrainerPort))},
		}
	})
	return nil
}

// xgboost makes the first node the one that starts the tracker. There is one worker for each GPU of a node, else one.
func xgboost(m *manifest.Manifest, _ *trainer.TrainingRuntimeSpec, _ *trainer.TrainJob) error {
	perNode := max(gpus(trainingContainer(m).Resources), 1)
	meet(m, func(r job.Replica) []corev1.EnvVar {
		return []corev1.EnvVar{
			{Name: "DMLC_TRACKER_URI", Value: m.Job.PodName(m.Leader)},
			{Name: "DMLC_TRACKER_PORT", Value: strconv.Itoa(int(trainer.TrainerPort))},
			{Name: "DMLC_TASK_ID", Value: strconv.Itoa(int(r.Index))},
			{Name: "DMLC_NUM_WORKER", Value: strconv.FormatInt(int64(m.Size(m.Leader.Role))*perNode, 10)},
		}
	})
	return nil
}

// meet lets the nodes find the first of them by its bare name, and gives the container that trains its variables.
func meet(m *manifest.Manifest, variables func(job.Replica) []corev1.EnvVar) {
	m.Rendezvous = true
	openPort(trainingContainer(m))
	m.Env = func(r job.Replica, _ int32) manifest.Env {
		if r.Role != m.Leader.Role {
			return manifest.Env{}
		}
		return manifest.Env{Training: variables(r)}
	}
}

// gpus is how many GPUs a container asks for, whoever makes them. Of several such resources the smallest number counts: beside a number
// of virtual GPUs there may be one of their memory.
func gpus(resources corev1.ResourceRequirements) int64 {
	for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
		var least int64
		for name, quantity := range list {
			if n := quantity.Value(); naming.IsGPU(name) && n > 0 && (least == 0 || n < least) {
				least = n
			}
		}
		if least > 0 {
			return least
		}
	}
	return 0
}
