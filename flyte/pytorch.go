package flyte

import (
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
)

// PyTorch is flytekit's configuration of a PyTorchJob with one master and a number of workers.
type PyTorch struct {
	// Master is always one replica.
	Master Replica
	// Worker has no replicas if the job has only a master, which Flyte 2 refuses.
	Worker Group
	// RunPolicy is the job's run policy; nil leaves everything to the operator's defaults.
	RunPolicy *RunPolicy
}

// CustomConfig serializes the configuration as flytekit's PyTorchFunctionTask does.
func (p PyTorch) CustomConfig() (Custom, error) {
	policy, warnings, err := p.RunPolicy.message()
	if err != nil {
		return Custom{}, fmt.Errorf("pytorch config: %w", err)
	}
	master, err := pytorchSpec("masterReplicas", Group{Replica: p.Master, Replicas: 1})
	if err != nil {
		return Custom{}, fmt.Errorf("pytorch config: %w", err)
	}
	worker, err := pytorchSpec("workerReplicas", p.Worker)
	if err != nil {
		return Custom{}, fmt.Errorf("pytorch config: %w", err)
	}
	return Custom{
		TaskType:        PyTorchTask,
		TaskTypeVersion: 1,
		Message: &kubeflow.DistributedPyTorchTrainingTask{
			MasterReplicas: master,
			WorkerReplicas: worker,
			RunPolicy:      policy,
		},
		Warnings: warnings,
	}, nil
}

func pytorchSpec(path string, g Group) (*kubeflow.DistributedPyTorchTrainingReplicaSpec, error) {
	f, err := g.fields(path)
	if err != nil {
		return nil, err
	}
	return &kubeflow.DistributedPyTorchTrainingReplicaSpec{
		Replicas: f.replicas, Image: f.image, Resources: f.resources, RestartPolicy: f.restart,
	}, nil
}

func pytorchOf(m *kubeflow.DistributedPyTorchTrainingTask) (PyTorch, []Warning, error) {
	var (
		p    PyTorch
		lost []Warning
		err  error
	)
	if p.RunPolicy, err = runPolicyOf(m.GetRunPolicy()); err != nil {
		return PyTorch{}, nil, err
	}
	if p.Worker, err = specOf(m.GetWorkerReplicas()).group("workerReplicas"); err != nil {
		return PyTorch{}, nil, err
	}
	master, err := specOf(m.GetMasterReplicas()).group("masterReplicas")
	if err != nil {
		return PyTorch{}, nil, err
	}
	if master.Replicas > 1 {
		lost = append(lost, warn(NotCarried, "masterReplicas.replicas", "%d, but Flyte always starts one master", master.Replicas))
	}
	p.Master = master.Replica
	return p, lost, nil
}
