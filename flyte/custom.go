package flyte

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TaskType is TaskTemplate.type, by which Flyte chooses the plugin.
type TaskType string

// The task types of this package's configurations, and MPI's, which has none: its messages are linted and rendered.
const (
	// PyTorchTask becomes a PyTorchJob.
	PyTorchTask TaskType = "pytorch"
	// TensorFlowTask becomes a TFJob.
	TensorFlowTask TaskType = "tensorflow"
	// MPITask becomes an MPIJob.
	MPITask TaskType = "mpi"
	// PythonTask is an ordinary task: one pod and no job. Elastic with one node is one, and its custom is not read.
	PythonTask TaskType = "python-task"
)

// Config is a configuration as a user writes it: Elastic, PyTorch or TensorFlow.
type Config interface {
	// CustomConfig returns what the task is registered with.
	CustomConfig() (Custom, error)
}

// Custom is a plugin message with the task type and version that say how to read it.
type Custom struct {
	// TaskType is the plugin that reads the message; TaskTypeVersion is 1, or 0 for messages of older Flytes.
	TaskType        TaskType
	TaskTypeVersion int32
	// Message is one of Flyte's generated types: flyteidl/plugins/kubeflow for version 1, flyteidl/plugins for version 0.
	Message proto.Message
	// Warnings say what the conversion to this message lost.
	Warnings []Warning
}

// newMessage returns the empty message for a task type and version.
func newMessage(taskType TaskType, version int32) (proto.Message, error) {
	if version != 0 && version != 1 {
		return nil, fmt.Errorf("task type version %d is unknown: want 0 or 1", version)
	}
	switch {
	case taskType == PyTorchTask && version == 0:
		return new(plugins.DistributedPyTorchTrainingTask), nil
	case taskType == PyTorchTask, taskType == PythonTask:
		return new(kubeflow.DistributedPyTorchTrainingTask), nil
	case taskType == TensorFlowTask && version == 0:
		return new(plugins.DistributedTensorflowTrainingTask), nil
	case taskType == TensorFlowTask:
		return new(kubeflow.DistributedTensorflowTrainingTask), nil
	case taskType == MPITask && version == 0:
		return new(plugins.DistributedMPITrainingTask), nil
	case taskType == MPITask:
		return new(kubeflow.DistributedMPITrainingTask), nil
	}
	return nil, fmt.Errorf("task type %q is not one of pytorch, tensorflow, mpi and python-task", taskType)
}

// JSON renders the message as Python's MessageToDict does, in the order of the fields and without spaces: lowerCamelCase
// names, enums by name, zeros left out, empty messages kept.
func (c Custom) JSON() ([]byte, error) {
	spaced, err := protojson.Marshal(c.Message)
	if err != nil {
		return nil, fmt.Errorf("render %s custom: %w", c.TaskType, err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, spaced); err != nil {
		return nil, fmt.Errorf("render %s custom: %w", c.TaskType, err)
	}
	return b.Bytes(), nil
}

// Struct is what TaskTemplate.custom holds: the JSON form, in which every number is a double.
func (c Custom) Struct() (*structpb.Struct, error) {
	data, err := c.JSON()
	if err != nil {
		return nil, err
	}
	s := new(structpb.Struct)
	if err := s.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("render %s custom: %w", c.TaskType, err)
	}
	return s, nil
}

// ParseCustom reads TaskTemplate.custom strictly. Unknown fields and zeros without effect are among the warnings.
func ParseCustom(taskType TaskType, version int32, s *structpb.Struct) (Custom, error) {
	data := []byte("{}")
	if s != nil {
		var err error
		if data, err = s.MarshalJSON(); err != nil {
			return Custom{}, fmt.Errorf("read %s custom: %w", taskType, err)
		}
	}
	return ParseCustomJSON(taskType, version, data)
}

// ParseCustomJSON reads the JSON form of a custom, as strictly as ParseCustom.
func ParseCustomJSON(taskType TaskType, version int32, data []byte) (Custom, error) {
	c := Custom{TaskType: taskType, TaskTypeVersion: version}
	var err error
	if c.Message, err = newMessage(taskType, version); err != nil {
		return Custom{}, err
	}
	if c.Warnings, err = unmarshalStrict(data, c.Message); err != nil {
		return Custom{}, fmt.Errorf("read %s custom: %w", taskType, err)
	}
	return c, nil
}

// FromMessage checks a plugin message of version 1 as strictly as ParseCustom and names its task type.
func FromMessage(m proto.Message) (Custom, error) {
	c := Custom{TaskTypeVersion: 1, Message: m}
	switch m.(type) {
	case *kubeflow.DistributedPyTorchTrainingTask:
		c.TaskType = PyTorchTask
	case *kubeflow.DistributedTensorflowTrainingTask:
		c.TaskType = TensorFlowTask
	case *kubeflow.DistributedMPITrainingTask:
		c.TaskType = MPITask
	default:
		return Custom{}, fmt.Errorf("%T is not a plugin message of version 1", m)
	}
	data, err := c.JSON()
	if err != nil {
		return Custom{}, err
	}
	checked, err := ParseCustomJSON(c.TaskType, c.TaskTypeVersion, data)
	if err != nil {
		return Custom{}, err
	}
	c.Warnings = append(checked.Warnings, unknownOnWire(m)...)
	return c, nil
}

// Config is the inverse of CustomConfig. The warnings name what the configuration has no field for.
func (c Custom) Config() (Config, []Warning, error) {
	switch m := c.current().(type) {
	case *kubeflow.DistributedPyTorchTrainingTask:
		if m.GetElasticConfig() != nil {
			return wrapConfig(elasticOf(c.TaskType, m))
		}
		return wrapConfig(pytorchOf(m))
	case *kubeflow.DistributedTensorflowTrainingTask:
		t, err := tensorflowOf(m)
		return wrapConfig(t, nil, err)
	}
	return nil, nil, fmt.Errorf("%s custom: it has no configuration in this package", c.TaskType)
}

func wrapConfig[C Config](c C, lost []Warning, err error) (Config, []Warning, error) {
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	return c, lost, nil
}

// current returns the message in the form of version 1. Version 0 had no run policy, and no settings for single roles.
func (c Custom) current() proto.Message {
	switch m := c.Message.(type) {
	case *plugins.DistributedPyTorchTrainingTask:
		now := &kubeflow.DistributedPyTorchTrainingTask{
			WorkerReplicas: &kubeflow.DistributedPyTorchTrainingReplicaSpec{Replicas: m.GetWorkers()},
		}
		if e := m.GetElasticConfig(); e != nil {
			now.ElasticConfig = &kubeflow.ElasticConfig{
				RdzvBackend: e.GetRdzvBackend(), MinReplicas: e.GetMinReplicas(), MaxReplicas: e.GetMaxReplicas(),
				NprocPerNode: e.GetNprocPerNode(), MaxRestarts: e.GetMaxRestarts(),
			}
		}
		return now
	case *plugins.DistributedTensorflowTrainingTask:
		group := func(n int32) *kubeflow.DistributedTensorflowTrainingReplicaSpec {
			return &kubeflow.DistributedTensorflowTrainingReplicaSpec{Replicas: n}
		}
		return &kubeflow.DistributedTensorflowTrainingTask{
			ChiefReplicas: group(m.GetChiefReplicas()), PsReplicas: group(m.GetPsReplicas()),
			WorkerReplicas: group(m.GetWorkers()), EvaluatorReplicas: group(m.GetEvaluatorReplicas()),
		}
	}
	return c.Message
}
