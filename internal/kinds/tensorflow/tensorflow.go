// Package tensorflow answers what is particular to TFJobs. Every replica finds all others in TF_CONFIG. The job ends with the
// Chief, or else with the first Worker. Replicas restart alone, because TensorFlow's servers wait for each other.
package tensorflow

import (
	"math"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

const worker = string(kubeflowv1.TFWorker)

// Kind is the adapter of TFJobs.
var Kind = kubeflow.Kind{
	Layout: kubeflowv1.TFLayout,
	Empty:  func() kubeflowv1.Job { return &kubeflowv1.TFJob{} },
	Label:  "tensorflow",
	Scope:  job.ScopeReplica,
	// Master is the older name of the Chief.
	Leaders:    []kubeflowv1.ReplicaType{kubeflowv1.TFChief, kubeflowv1.TFMaster, kubeflowv1.TFWorker},
	PerReplica: []string{"TF_CONFIG"},
	Complete:   func(m *manifest.Manifest, obj kubeflowv1.Job) { complete(m, obj.(*kubeflowv1.TFJob)) },
	Environment: func(m *manifest.Manifest, obj kubeflowv1.Job, r job.Replica, _ int32) manifest.Env {
		return environment(m, obj.(*kubeflowv1.TFJob), r)
	},
}

func complete(m *manifest.Manifest, tf *kubeflowv1.TFJob) {
	if m.Leader.Role == worker && *tf.Spec.SuccessPolicy != kubeflowv1.SuccessPolicyAllWorkers {
		m.Job.Success.Rule = job.SuccessFirst
	}
	if tf.Spec.EnableDynamicWorker && m.Has(worker) {
		// A Worker that knows only of itself can be lost, as long as one is left.
		m.Job.Elastic = &job.Elastic{Role: worker, Min: 1, Max: math.MaxInt32}
	}
}
