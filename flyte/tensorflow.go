package flyte

import (
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
)

// TensorFlow is flytekit's configuration of a TFJob. Flyte needs at least one worker; a role without replicas is left out.
type TensorFlow struct {
	Chief, PS, Worker, Evaluator Group
	// RunPolicy is the job's run policy; nil leaves everything to the operator's defaults.
	RunPolicy *RunPolicy
}

// CustomConfig serializes the configuration as flytekit's TensorflowFunctionTask does.
func (t TensorFlow) CustomConfig() (Custom, error) {
	policy, warnings, err := t.RunPolicy.message()
	if err != nil {
		return Custom{}, fmt.Errorf("tensorflow config: %w", err)
	}
	m := &kubeflow.DistributedTensorflowTrainingTask{RunPolicy: policy}
	for _, role := range []struct {
		path string
		from Group
		to   **kubeflow.DistributedTensorflowTrainingReplicaSpec
	}{
		{"chiefReplicas", t.Chief, &m.ChiefReplicas},
		{"psReplicas", t.PS, &m.PsReplicas},
		{"workerReplicas", t.Worker, &m.WorkerReplicas},
		{"evaluatorReplicas", t.Evaluator, &m.EvaluatorReplicas},
	} {
		f, err := role.from.fields(role.path)
		if err != nil {
			return Custom{}, fmt.Errorf("tensorflow config: %w", err)
		}
		*role.to = &kubeflow.DistributedTensorflowTrainingReplicaSpec{
			Replicas: f.replicas, Image: f.image, Resources: f.resources, RestartPolicy: f.restart,
		}
	}
	return Custom{TaskType: TensorFlowTask, TaskTypeVersion: 1, Message: m, Warnings: warnings}, nil
}

func tensorflowOf(m *kubeflow.DistributedTensorflowTrainingTask) (TensorFlow, error) {
	policy, err := runPolicyOf(m.GetRunPolicy())
	if err != nil {
		return TensorFlow{}, err
	}
	t := TensorFlow{RunPolicy: policy}
	for _, role := range []struct {
		path string
		from *kubeflow.DistributedTensorflowTrainingReplicaSpec
		to   *Group
	}{
		{"chiefReplicas", m.GetChiefReplicas(), &t.Chief},
		{"psReplicas", m.GetPsReplicas(), &t.PS},
		{"workerReplicas", m.GetWorkerReplicas(), &t.Worker},
		{"evaluatorReplicas", m.GetEvaluatorReplicas(), &t.Evaluator},
	} {
		if *role.to, err = specOf(role.from).group(role.path); err != nil {
			return TensorFlow{}, err
		}
	}
	return t, nil
}
