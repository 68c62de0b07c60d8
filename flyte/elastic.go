package flyte

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
	corev1 "k8s.io/api/core/v1"
)

// Elastic is flyte-sdk's configuration of a torch elastic job. Start from NewElastic, which sets flyte-sdk's defaults; a bare
// literal has none. The fields from MonitorInterval on, except MaxRestarts, are used in the container only: they are not part of
// the message, so they have their defaults after a conversion from one.
type Elastic struct {
	// NNodes is the number of nodes, or a range of it.
	NNodes NNodes
	// NprocPerNode is how many processes torch starts on each node.
	NprocPerNode int32
	// RdzvBackend is c10d, etcd or etcd-v2; empty leaves it to the operator (c10d). Only c10d has a server.
	RdzvBackend string
	// RunPolicy is the job's run policy; nil leaves everything to the operator's defaults.
	RunPolicy *RunPolicy
	// MonitorInterval is how often, in seconds, torch checks its processes.
	MonitorInterval int32
	// MaxRestarts is how often torch restarts the processes of all running pods after one of them failed.
	MaxRestarts int32
	// RdzvConfigs are torch's rendezvous settings.
	RdzvConfigs map[string]any
	// NCCLHeartbeatTimeoutSec kills a process whose NCCL watchdog is stuck for that long; nil leaves torch's 1800.
	NCCLHeartbeatTimeoutSec *int32
	// NCCLAsyncErrorHandling makes NCCL abort stuck collectives.
	NCCLAsyncErrorHandling bool
	// NCCLCollectiveTimeoutSec is the timeout of one collective; nil leaves torch's 600.
	NCCLCollectiveTimeoutSec *int32
	// NCCLEnableMonitoring runs NCCL's monitor, which the heartbeat timeout needs.
	NCCLEnableMonitoring bool
}

// defaultJoinTimeout is flyte-sdk's and flytekit's, in seconds: how long replicas wait for each other.
const defaultJoinTimeout = 900

var defaultRdzvConfigs = map[string]any{"timeout": 900, "join_timeout": defaultJoinTimeout}

// NewElastic returns flyte-sdk's defaults for that many nodes and processes.
func NewElastic(nnodes NNodes, nprocPerNode int32) Elastic {
	heartbeat := int32(300)
	return Elastic{
		NNodes:                  nnodes,
		NprocPerNode:            nprocPerNode,
		RdzvBackend:             "c10d",
		MonitorInterval:         3,
		MaxRestarts:             3,
		RdzvConfigs:             maps.Clone(defaultRdzvConfigs),
		NCCLHeartbeatTimeoutSec: &heartbeat,
		NCCLEnableMonitoring:    true,
	}
}

// CustomConfig serializes the configuration as flyte-sdk's TorchFunctionTask does.
func (e Elastic) CustomConfig() (Custom, error) {
	if err := e.validate(); err != nil {
		return Custom{}, fmt.Errorf("elastic config: %w", err)
	}
	policy, warnings, err := e.RunPolicy.message()
	if err != nil {
		return Custom{}, fmt.Errorf("elastic config: %w", err)
	}
	taskType := PyTorchTask
	if e.NNodes == Nodes(1) {
		taskType = PythonTask
	}
	return Custom{
		TaskType:        taskType,
		TaskTypeVersion: 1,
		Message: &kubeflow.DistributedPyTorchTrainingTask{
			WorkerReplicas: &kubeflow.DistributedPyTorchTrainingReplicaSpec{Replicas: e.NNodes.Max},
			RunPolicy:      policy,
			ElasticConfig: &kubeflow.ElasticConfig{
				RdzvBackend:  e.RdzvBackend,
				MinReplicas:  e.NNodes.Min,
				MaxReplicas:  e.NNodes.Max,
				NprocPerNode: e.NprocPerNode,
				MaxRestarts:  e.MaxRestarts,
			},
		},
		Warnings: warnings,
	}, nil
}

func (e Elastic) validate() error {
	if err := e.NNodes.validate(); err != nil {
		return err
	}
	if e.NprocPerNode < 1 {
		return fmt.Errorf("elasticConfig.nprocPerNode: %d processes on a node: want at least 1", e.NprocPerNode)
	}
	if e.MaxRestarts < 0 {
		return fmt.Errorf("elasticConfig.maxRestarts: %d is negative", e.MaxRestarts)
	}
	switch e.RdzvBackend {
	case "", "c10d", "etcd", "etcd-v2":
		return nil
	}
	return fmt.Errorf("elasticConfig.rdzvBackend: %q is unknown: want c10d, etcd or etcd-v2", e.RdzvBackend)
}

// Env is what flyte-sdk sets in the training process before torch starts, in the order in which it does. It sets none that
// the container already has, so a value from the pod template or the operator wins.
func (e Elastic) Env() []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: "PYTHONUNBUFFERED", Value: "1"}}
	set := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	seconds := func(n int32) string { return strconv.Itoa(int(n)) }
	if e.NprocPerNode > 1 {
		set("OMP_NUM_THREADS", "1")
	}
	if e.NCCLHeartbeatTimeoutSec != nil {
		set("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", seconds(*e.NCCLHeartbeatTimeoutSec))
	}
	if e.NCCLAsyncErrorHandling {
		set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
	}
	if e.NCCLCollectiveTimeoutSec != nil {
		set("FLYTE_NCCL_COLLECTIVE_TIMEOUT_SEC", seconds(*e.NCCLCollectiveTimeoutSec))
	}
	if e.NCCLEnableMonitoring {
		set("TORCH_NCCL_ENABLE_MONITORING", "1")
	}
	return env
}

// elasticOf is the inverse of CustomConfig. Of the fields that an Elastic does not have, Flyte's backend reads only the number of
// workers.
func elasticOf(taskType TaskType, m *kubeflow.DistributedPyTorchTrainingTask) (Elastic, []Warning, error) {
	c := m.GetElasticConfig()
	nnodes := NNodes{Min: c.GetMinReplicas(), Max: c.GetMaxReplicas()}
	nnodes.Text = nnodes.Min != nnodes.Max || (nnodes == Nodes(1) && taskType != PythonTask)
	e := NewElastic(nnodes, c.GetNprocPerNode())
	e.RdzvBackend = c.GetRdzvBackend()
	e.MaxRestarts = c.GetMaxRestarts()

	var err error
	if e.RunPolicy, err = runPolicyOf(m.GetRunPolicy()); err != nil {
		return Elastic{}, nil, err
	}
	return e, elasticLosses(m), e.validate()
}

func elasticLosses(m *kubeflow.DistributedPyTorchTrainingTask) []Warning {
	var lost []Warning
	worker := specOf(m.GetWorkerReplicas())
	if most := m.GetElasticConfig().GetMaxReplicas(); worker.replicas != most {
		lost = append(lost, warn(NotCarried, "workerReplicas.replicas",
			"%d, but an Elastic starts as many workers as its maximum, %d", worker.replicas, most))
	}
	if worker.image != "" || worker.hasResources() || worker.restart != RestartNever {
		lost = append(lost, warn(NotCarried, "workerReplicas", "an Elastic has no image, resources or restart policy of its own"))
	}
	if m.GetMasterReplicas() != nil {
		lost = append(lost, warn(NotCarried, "masterReplicas", "Flyte drops the master of an elastic job"))
	}
	return lost
}
