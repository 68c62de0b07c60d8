// Package xgboost answers what is particular to XGBoostJobs. The Master starts the tracker that the Workers connect to, and the job
// ends with it. The replicas are one collective of a fixed size: a failure restarts the whole job.
package xgboost

import (
	"strings"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

const (
	master = string(kubeflowv1.XGBoostMaster)
	worker = string(kubeflowv1.XGBoostWorker)
)

// Kind is the adapter of XGBoostJobs.
var Kind = kubeflow.Kind{
	Layout:      kubeflowv1.XGBoostLayout,
	Empty:       func() kubeflowv1.Job { return &kubeflowv1.XGBoostJob{} },
	Label:       "xgboost",
	Scope:       job.ScopeJob,
	Leaders:     []kubeflowv1.ReplicaType{kubeflowv1.XGBoostMaster},
	Rendezvous:  true,
	PerReplica:  []string{"RANK", "DMLC_TASK_ID"},
	Environment: environment,
}

// environment has the names of Training Operator, of which WORKER_* are for LightGBM, and those of XGBoost's tracker (DMLC_*).
func environment(m *manifest.Manifest, obj kubeflowv1.Job, r job.Replica, _ int32) manifest.Env {
	rank := r.Index
	if r.Role == worker {
		rank++
	}
	var v kubeflow.Variables
	v.SetNumber(kubeflow.LeaderPort(m, obj), "MASTER_PORT", "DMLC_TRACKER_PORT")
	v.Set(m.Job.PodName(m.Leader), "MASTER_ADDR", "DMLC_TRACKER_URI")
	v.SetNumber(m.Total(), "WORLD_SIZE", "DMLC_NUM_WORKER")
	v.SetNumber(rank, "RANK", "DMLC_TASK_ID")
	v.Set("1", "PYTHONUNBUFFERED")
	if m.Has(worker) {
		v.SetNumber(kubeflow.Port(m, kubeflowv1.XGBoostLayout, worker), "WORKER_PORT")
		v.Set(strings.Join(workers(m), ","), "WORKER_ADDRS")
	}
	return manifest.Env{Everywhere: v}
}

// workers are the addresses of the Workers, through the job's Service: only the Master has a Service of its own.
func workers(m *manifest.Manifest) []string {
	var all []string
	for i := range m.Size(worker) {
		all = append(all, m.Job.PodName(job.Replica{Role: worker, Index: i})+"."+m.Job.Name)
	}
	return all
}
