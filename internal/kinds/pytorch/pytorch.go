// Package pytorch answers what is particular to PyTorchJobs. The others connect to the Master, or else to the first Worker, and the
// job ends with it. A job with a fixed number of replicas is one collective and restarts as a whole. An elastic job replaces single
// Workers, except the first one, which holds the rendezvous.
package pytorch

import (
	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

const (
	master = string(kubeflowv1.PyTorchMaster)
	worker = string(kubeflowv1.PyTorchWorker)
)

// Kind is the adapter of PyTorchJobs.
var Kind = kubeflow.Kind{
	Layout:     kubeflowv1.PyTorchLayout,
	Empty:      func() kubeflowv1.Job { return &kubeflowv1.PyTorchJob{} },
	Label:      "pytorch",
	Scope:      job.ScopeJob,
	Leaders:    []kubeflowv1.ReplicaType{kubeflowv1.PyTorchMaster, kubeflowv1.PyTorchWorker},
	Rendezvous: true,
	PerReplica: []string{"RANK", "PET_NODE_RANK"},
	Complete:   func(m *manifest.Manifest, obj kubeflowv1.Job) { elastic(m, obj.(*kubeflowv1.PyTorchJob)) },
	Environment: func(m *manifest.Manifest, obj kubeflowv1.Job, r job.Replica, attempt int32) manifest.Env {
		return environment(m, obj.(*kubeflowv1.PyTorchJob), r, attempt)
	},
}

// elastic sets the success rule, the restart scope, and the bounds and autoscaler of an elastic job. Where a Master leads, its end
// ends an elastic job, too.
func elastic(m *manifest.Manifest, pj *kubeflowv1.PyTorchJob) {
	policy := pj.Spec.ElasticPolicy
	if policy != nil && m.Leader.Role == worker {
		m.Job.Success.Rule = job.SuccessAny
	}
	if policy == nil || policy.MinReplicas == nil {
		return
	}
	m.Job.Scope = job.ScopeReplica
	m.Job.Elastic = &job.Elastic{Role: worker, Min: *policy.MinReplicas, Max: *policy.MaxReplicas, Anchored: anchored(policy)}
	m.Metrics = policy.Metrics
}

// anchored tells whether the Workers meet in a store that the first of them holds.
func anchored(policy *kubeflowv1.ElasticPolicy) bool {
	unset := func(s *string) bool { return s == nil || *s == "" }
	backend := policy.RDZVBackend
	return unset(policy.RDZVHost) && (backend == nil || *backend == "" || *backend == kubeflowv1.RDZVBackendC10D)
}
