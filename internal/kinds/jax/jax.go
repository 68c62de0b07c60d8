// Package jax answers what is particular to JAXJobs. All replicas are Workers, and the first one is the coordinator that the others
// connect to. They are one collective of a fixed size: a failure restarts the whole job, and it succeeds when all have.
package jax

import (
	"fmt"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Kind is the adapter of JAXJobs.
var Kind = kubeflow.Kind{
	Layout:      kubeflowv1.JAXLayout,
	Empty:       func() kubeflowv1.Job { return &kubeflowv1.JAXJob{} },
	Label:       "jax",
	Scope:       job.ScopeJob,
	Leaders:     []kubeflowv1.ReplicaType{kubeflowv1.JAXWorker},
	Rendezvous:  true,
	PerReplica:  []string{"PROCESS_ID", "JAX_PROCESS_ID"},
	Environment: environment,
}

// environment has the names of Training Operator, which a program passes to jax.distributed.initialize, and those of Trainer. Of them JAX
// reads the coordinator's address by itself, which has a port.
func environment(m *manifest.Manifest, obj kubeflowv1.Job, r job.Replica, _ int32) manifest.Env {
	port, coordinator := kubeflow.LeaderPort(m, obj), m.Job.PodName(m.Leader)
	var v kubeflow.Variables
	v.Set("1", "PYTHONUNBUFFERED")
	v.SetNumber(port, "COORDINATOR_PORT")
	v.Set(coordinator, "COORDINATOR_ADDRESS")
	v.Set(fmt.Sprintf("%s:%d", coordinator, port), "JAX_COORDINATOR_ADDRESS")
	v.SetNumber(m.Total(), "NUM_PROCESSES", "JAX_NUM_PROCESSES")
	v.SetNumber(r.Index, "PROCESS_ID", "JAX_PROCESS_ID")
	return manifest.Env{Everywhere: v}
}
