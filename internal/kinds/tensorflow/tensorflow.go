// Package tensorflow answers what is particular to TFJobs: every replica is told of all others by TF_CONFIG; the Chief,
// or else the first Worker, is the one whose end counts; replicas restart alone, since TensorFlow's servers wait for each
// other.
package tensorflow

import (
	"cmp"
	"math"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// order is that of creation.
var order = []kubeflowv1.ReplicaType{
	kubeflowv1.TFChief, kubeflowv1.TFMaster, kubeflowv1.TFPS, kubeflowv1.TFWorker, kubeflowv1.TFEvaluator,
}

// Kind is the adapter of TFJobs.
type Kind struct{}

// Name is the API kind.
func (Kind) Name() string { return kubeflowv1.TFJobKind }

// GroupVersion is where the API has it.
func (Kind) GroupVersion() schema.GroupVersion { return kubeflowv1.GroupVersion }

// Framework is the value of the metrics' label.
func (Kind) Framework() string { return "tensorflow" }

// New is an empty TFJob.
func (Kind) New() manifest.Object { return &kubeflowv1.TFJob{} }

// Write puts a status into a TFJob.
func (Kind) Write(obj manifest.Object, m *manifest.Manifest, s job.Status) {
	obj.(*kubeflowv1.TFJob).Status = manifest.WriteStatus(s, m.Selector)
}

// Suspend edits a TFJob so that it stands still, or goes on.
func (Kind) Suspend(obj manifest.Object, suspend bool) {
	obj.(*kubeflowv1.TFJob).Spec.RunPolicy.Suspend = &suspend
}

// Resize edits a TFJob so that a role has n replicas, the Workers where none is named.
func (Kind) Resize(obj manifest.Object, role string, n int32) (string, bool) {
	return manifest.Resize(obj.(*kubeflowv1.TFJob).Spec.TFReplicaSpecs, cmp.Or(role, string(kubeflowv1.TFWorker)), n)
}

// Read takes the job out of a TFJob, which it leaves as it is.
func (Kind) Read(obj manifest.Object) *manifest.Manifest {
	tf := obj.(*kubeflowv1.TFJob).DeepCopy()
	tf.SetDefaults()
	m := manifest.Kubeflow(kubeflowv1.TFJobKind, &tf.ObjectMeta, tf.Spec.RunPolicy, &tf.Status, tf.Spec.TFReplicaSpecs, order, kubeflowv1.TFContainer)
	m.Job.Scope = job.ScopeReplica
	if tf.Spec.EnableDynamicWorker && m.Has(kubeflowv1.TFWorker) {
		// Workers that know only of themselves can be done without, as long as one is left.
		m.Job.Elastic = &job.Elastic{Role: string(kubeflowv1.TFWorker), Min: 1, Max: math.MaxInt32}
	}
	m.Leader = leader(m)
	m.Job.Success = success(m, *tf.Spec.SuccessPolicy)
	m.Job.Children = m.Children()
	m.Env = func(r job.Replica) manifest.Env { return environment(m, tf, r) }
	return m
}

// leader is the Chief, by either of its names, or else the first Worker.
func leader(m *manifest.Manifest) job.Replica {
	for _, role := range []kubeflowv1.ReplicaType{kubeflowv1.TFChief, kubeflowv1.TFMaster} {
		if m.Has(role) {
			return job.Replica{Role: string(role)}
		}
	}
	return job.Replica{Role: string(kubeflowv1.TFWorker)}
}

func success(m *manifest.Manifest, policy kubeflowv1.SuccessPolicy) job.Success {
	rule := job.SuccessAll
	if m.Leader.Role == string(kubeflowv1.TFWorker) && policy != kubeflowv1.SuccessPolicyAllWorkers {
		rule = job.SuccessFirst
	}
	return job.Success{Role: m.Leader.Role, Rule: rule}
}
