package trainjob

import (
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/manifest"
)

// framework is what is particular to one way to train: how many nodes there may be, where they meet, what their environment is.
type framework struct {
	// named tells whether a runtime names this framework.
	named func(*trainer.MLPolicy) bool
	build func(*manifest.Manifest, *trainer.TrainingRuntimeSpec, *trainer.TrainJob) error
}

// frameworks are those that are supported. The last is for runtimes that name none; it sets no environment.
var frameworks = []framework{
	{named: func(p *trainer.MLPolicy) bool { return p.Torch != nil }, build: torch},
	{named: func(p *trainer.MLPolicy) bool { return p.JAX != nil }, build: jax},
	{named: func(p *trainer.MLPolicy) bool { return p.XGBoost != nil }, build: xgboost},
	{named: func(p *trainer.MLPolicy) bool { return p.MPI != nil }, build: mpi},
	{named: func(*trainer.MLPolicy) bool { return true }, build: plain},
}

func plain(*manifest.Manifest, *trainer.TrainingRuntimeSpec, *trainer.TrainJob) error { return nil }

func frameworkOf(policy *trainer.MLPolicy) framework {
	if policy == nil {
		policy = &trainer.MLPolicy{}
	}
	for _, f := range frameworks {
		if f.named(policy) {
			return f
		}
	}
	return framework{}
}
