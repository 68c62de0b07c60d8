package flyte

import (
	"bytes"
	"testing"

	//nolint:staticcheck // Flyte's backend decodes with this very package, deprecated as it is.
	"github.com/golang/protobuf/jsonpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"
)

// TestEncoderAgreesWithFlyte: on more than 10,000 configurations the Struct is what MessageToDict makes of Flyte's message,
// and what Flyte's backend reads from it is that message again.
func TestEncoderAgreesWithFlyte(t *testing.T) {
	configs := 0
	rapid.Check(t, func(t *rapid.T) {
		for _, config := range rapid.SliceOfN(anyConfig, 110, 110).Draw(t, "configs") {
			configs++
			custom, err := config.CustomConfig()
			if err != nil {
				t.Fatalf("serialize %+v: %v", config, err)
			}
			s, err := custom.Struct()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(messageToDict(custom.Message.ProtoReflect()), s.AsMap()); diff != "" {
				t.Fatalf("the Struct of %+v (-MessageToDict +ours):\n%s", config, diff)
			}
			text, err := s.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			read := custom.Message.ProtoReflect().New().Interface()
			backend := jsonpb.Unmarshaler{AllowUnknownFields: true}
			if err := backend.Unmarshal(bytes.NewReader(text), protoadapt.MessageV1Of(read)); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(custom.Message, read) {
				t.Fatalf("Flyte's backend reads %v, want %v", read, custom.Message)
			}
		}
	})
	if !t.Failed() && configs < 10_000 {
		t.Errorf("only %d configurations were tried", configs)
	}
}

// messageToDict is Python's algorithm: the set fields by their JSON names; scalars that are zero count as unset.
func messageToDict(m protoreflect.Message) map[string]any {
	dict := map[string]any{}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !fd.IsList() {
			dict[fd.JSONName()] = dictValue(fd, v)
			return true
		}
		items := []any{}
		for i := range v.List().Len() {
			items = append(items, dictValue(fd, v.List().Get(i)))
		}
		dict[fd.JSONName()] = items
		return true
	})
	return dict
}

func dictValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return messageToDict(v.Message())
	case protoreflect.EnumKind:
		return string(fd.Enum().Values().ByNumber(v.Enum()).Name())
	case protoreflect.Int32Kind:
		return float64(v.Int())
	}
	return v.String()
}

// TestConfigRoundTrip: what a message can carry comes back; a run policy comes back without the zeros.
func TestConfigRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := anyConfig.Draw(t, "config")
		custom, err := config.CustomConfig()
		if err != nil {
			t.Fatal(err)
		}
		s, err := custom.Struct()
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseCustom(custom.TaskType, custom.TaskTypeVersion, s)
		if err != nil {
			t.Fatal(err)
		}
		if len(read.Warnings) > 0 {
			t.Fatalf("warnings reading our own custom: %v", read.Warnings)
		}
		back, lost, err := read.Config()
		if err != nil {
			t.Fatal(err)
		}
		if len(lost) > 0 {
			t.Fatalf("lost on the way back: %v", lost)
		}
		if diff := cmp.Diff(carried(config), back); diff != "" {
			t.Fatalf("(-carried +back):\n%s", diff)
		}
	})
}

// carried is the part of a configuration that a message can carry, in its canonical spelling.
func carried(config Config) Config {
	policy := func(p *RunPolicy) *RunPolicy {
		if p == nil {
			return nil
		}
		nonZero := func(n *int32) *int32 {
			if n != nil && *n == 0 {
				return nil
			}
			return n
		}
		clean, err := ParseCleanPodPolicy(string(p.CleanPodPolicy))
		if err != nil {
			clean = CleanPodNone
		}
		return &RunPolicy{clean, nonZero(p.TTLSecondsAfterFinished), nonZero(p.ActiveDeadlineSeconds), nonZero(p.BackoffLimit)}
	}
	replica := func(r Replica) Replica {
		if r.RestartPolicy == "" {
			r.RestartPolicy = RestartNever
		}
		return r
	}
	group := func(g Group) Group { return Group{replica(g.Replica), g.Replicas} }
	switch c := config.(type) {
	case Elastic:
		c.RunPolicy = policy(c.RunPolicy)
		return c
	case PyTorch:
		return PyTorch{Master: replica(c.Master), Worker: group(c.Worker), RunPolicy: policy(c.RunPolicy)}
	case TensorFlow:
		return TensorFlow{group(c.Chief), group(c.PS), group(c.Worker), group(c.Evaluator), policy(c.RunPolicy)}
	}
	panic("a configuration of an unknown kind")
}

// TestConfigReports: a message can say more than a configuration.
func TestConfigReports(t *testing.T) {
	const elastic = `"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":4,"nprocPerNode":1}`
	for _, c := range []struct {
		name, custom string
		want         []string
	}{
		{"an elastic job that starts below its maximum", `{"workerReplicas":{"replicas":3},` + elastic + `}`,
			[]string{"workerReplicas.replicas: 3, but an Elastic starts as many workers as its maximum, 4 [not-carried]"}},
		{"elastic workers with an image", `{"workerReplicas":{"replicas":4,"image":"other:1"},` + elastic + `}`,
			[]string{"workerReplicas: an Elastic has no image, resources or restart policy of its own [not-carried]"}},
		{"elastic workers that are restarted", `{"workerReplicas":{"common":{"replicas":4,"restartPolicy":"RESTART_POLICY_ALWAYS"}},` + elastic + `}`,
			[]string{"workerReplicas: an Elastic has no image, resources or restart policy of its own [not-carried]"}},
		{"an elastic job with a master", `{"workerReplicas":{"replicas":4},"masterReplicas":{},` + elastic + `}`,
			[]string{"masterReplicas: Flyte drops the master of an elastic job [not-carried]"}},
		{"two masters", `{"masterReplicas":{"replicas":2}}`,
			[]string{"masterReplicas.replicas: 2, but Flyte always starts one master [not-carried]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			custom, err := ParseCustomJSON(PyTorchTask, 1, []byte(c.custom))
			if err != nil {
				t.Fatal(err)
			}
			_, lost, err := custom.Config()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(lost)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		taskType TaskType
		custom   string
		want     string
	}{
		{"MPI", MPITask, `{}`, "mpi custom: it has no configuration in this package"},
		{"an elastic job without processes", PyTorchTask, `{"elasticConfig":{"minReplicas":1,"maxReplicas":1}}`,
			"read configuration: elasticConfig.nprocPerNode: 0 processes on a node: want at least 1"},
		{"a resource named twice", PyTorchTask, `{"workerReplicas":{"resources":{"limits":[{"name":"CPU","value":"1"},{"name":"CPU","value":"2"}]}}}`,
			"read configuration: workerReplicas.resources.limits: CPU is named twice"},
		{"a resource no pod gets", TensorFlowTask, `{"psReplicas":{"resources":{"requests":[{"name":"STORAGE","value":"1Gi"}]}}}`,
			"read configuration: psReplicas.resources.requests: STORAGE is not a resource that Flyte gives to a pod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			custom, err := ParseCustomJSON(c.taskType, 1, []byte(c.custom))
			if err != nil {
				t.Fatal(err)
			}
			config, _, err := custom.Config()
			if err == nil {
				t.Fatalf("read as %+v", config)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestVersion0 reads the messages of before the run policy.
func TestVersion0(t *testing.T) {
	for _, c := range []struct {
		taskType TaskType
		custom   string
		want     Config
	}{
		{PyTorchTask, `{"workers":2}`, PyTorch{Master: Replica{RestartPolicy: RestartNever}, Worker: Group{Replica{RestartPolicy: RestartNever}, 2}}},
		{PyTorchTask, `{"workers":2,"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":2,"nprocPerNode":4,"maxRestarts":3}}`, NewElastic(Nodes(2), 4)},
		{TensorFlowTask, `{"workers":3,"psReplicas":2,"chiefReplicas":1,"evaluatorReplicas":1}`, TensorFlow{
			Chief: Group{Replica{RestartPolicy: RestartNever}, 1}, PS: Group{Replica{RestartPolicy: RestartNever}, 2},
			Worker: Group{Replica{RestartPolicy: RestartNever}, 3}, Evaluator: Group{Replica{RestartPolicy: RestartNever}, 1},
		}},
	} {
		custom, err := ParseCustomJSON(c.taskType, 0, []byte(c.custom))
		if err != nil {
			t.Fatal(err)
		}
		got, lost, err := custom.Config()
		if err != nil || len(lost) > 0 {
			t.Fatalf("read %s with error %v, lost %v", c.custom, err, lost)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.custom, diff)
		}
	}
}
