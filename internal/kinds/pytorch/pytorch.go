// Package pytorch answers what is particular to PyTorchJobs: the Master, or else the first Worker, is where the others
// meet and whose end counts; a job with a fixed number of replicas is one collective that restarts as one, an elastic one
// replaces its Workers singly, but for the first, which holds the rendezvous.
package pytorch

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Kind is the adapter of PyTorchJobs.
type Kind struct{}

// Name is the API kind.
func (Kind) Name() string { return kubeflowv1.PyTorchJobKind }

// GroupVersion is where the API has it.
func (Kind) GroupVersion() schema.GroupVersion { return kubeflowv1.GroupVersion }

// Framework is the value of the metrics' label.
func (Kind) Framework() string { return "pytorch" }

// New is an empty PyTorchJob.
func (Kind) New() manifest.Object { return &kubeflowv1.PyTorchJob{} }

// Write puts a status into a PyTorchJob.
func (Kind) Write(obj manifest.Object, m *manifest.Manifest, s job.Status) {
	obj.(*kubeflowv1.PyTorchJob).Status = manifest.WriteStatus(s, m.Selector)
}

// Suspend edits a PyTorchJob so that it stands still, or goes on.
func (Kind) Suspend(obj manifest.Object, suspend bool) {
	obj.(*kubeflowv1.PyTorchJob).Spec.RunPolicy.Suspend = &suspend
}

// Resize edits a PyTorchJob so that a role has n replicas, the Workers where none is named.
func (Kind) Resize(obj manifest.Object, role string, n int32) (string, bool) {
	return manifest.Resize(obj.(*kubeflowv1.PyTorchJob).Spec.PyTorchReplicaSpecs, cmp.Or(role, string(kubeflowv1.PyTorchWorker)), n)
}

// Read takes the job out of a PyTorchJob, which it leaves as it is.
func (Kind) Read(obj manifest.Object) *manifest.Manifest {
	pj := obj.(*kubeflowv1.PyTorchJob).DeepCopy()
	unsized := unsized(pj)
	pj.SetDefaults()
	m := manifest.Kubeflow(kubeflowv1.PyTorchJobKind, &pj.ObjectMeta, pj.Spec.RunPolicy, &pj.Status, pj.Spec.PyTorchReplicaSpecs,
		[]kubeflowv1.ReplicaType{kubeflowv1.PyTorchMaster, kubeflowv1.PyTorchWorker}, kubeflowv1.PyTorchContainer)
	elastic(m, pj)
	m.Job.Unsized = unsized && m.Autoscaled()
	hasMaster := m.Has(kubeflowv1.PyTorchMaster)
	m.Job.Success = success(hasMaster, pj.Spec.ElasticPolicy != nil)
	m.Leader = job.Replica{Role: string(kubeflowv1.PyTorchWorker)}
	if hasMaster {
		m.Leader.Role = string(kubeflowv1.PyTorchMaster)
	}
	m.Rendezvous = true
	m.Job.Children = m.Children()
	m.Env = func(r job.Replica) manifest.Env { return environment(m, pj, r) }
	return m
}

// elastic sets the restart scope, and the bounds and autoscaler of an elastic job.
func elastic(m *manifest.Manifest, pj *kubeflowv1.PyTorchJob) {
	policy := pj.Spec.ElasticPolicy
	if policy == nil || policy.MinReplicas == nil {
		m.Job.Scope = job.ScopeJob
		return
	}
	m.Job.Scope = job.ScopeReplica
	m.Job.Elastic = &job.Elastic{
		Role: string(kubeflowv1.PyTorchWorker), Min: *policy.MinReplicas, Max: *policy.MaxReplicas, Anchored: anchored(policy),
	}
	m.Metrics = policy.Metrics
}

// unsized tells whether the job names no number of Workers, so that an autoscaler would find none.
func unsized(pj *kubeflowv1.PyTorchJob) bool {
	workers := pj.Spec.PyTorchReplicaSpecs[kubeflowv1.PyTorchWorker]
	return workers != nil && workers.Replicas == nil
}

// anchored tells whether the Workers meet in a store that the first of them holds.
func anchored(policy *kubeflowv1.ElasticPolicy) bool {
	unset := func(s *string) bool { return s == nil || *s == "" }
	backend := policy.RDZVBackend
	return unset(policy.RDZVHost) && (backend == nil || *backend == "" || *backend == kubeflowv1.RDZVBackendC10D)
}

func success(hasMaster, elastic bool) job.Success {
	switch {
	case hasMaster:
		return job.Success{Role: string(kubeflowv1.PyTorchMaster), Rule: job.SuccessAll}
	case elastic:
		return job.Success{Role: string(kubeflowv1.PyTorchWorker), Rule: job.SuccessAny}
	default:
		return job.Success{Role: string(kubeflowv1.PyTorchWorker), Rule: job.SuccessAll}
	}
}
