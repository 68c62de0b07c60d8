package flyte

import (
	"encoding/hex"
	"testing"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestParseCustomAccepts(t *testing.T) {
	for _, c := range []struct {
		name, custom, want string
	}{
		{"nothing at all", `{}`, `{}`},
		{"proto names", `{"worker_replicas":{"replicas":2},"run_policy":{"backoff_limit":3}}`, `{"workerReplicas":{"replicas":2},"runPolicy":{"backoffLimit":3}}`},
		{"a whole number written as a double", `{"workerReplicas":{"replicas":2.0}}`, `{"workerReplicas":{"replicas":2}}`},
		{"a number in a string", `{"workerReplicas":{"replicas":"2"}}`, `{"workerReplicas":{"replicas":2}}`},
		{"an enum by its number", `{"runPolicy":{"cleanPodPolicy":2}}`, `{"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL"}}`},
		{"null for unset", `{"runPolicy":null,"workerReplicas":{"replicas":null}}`, `{"workerReplicas":{}}`},
		{"the largest number there is", `{"runPolicy":{"activeDeadlineSeconds":2147483647}}`, `{"runPolicy":{"activeDeadlineSeconds":2147483647}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			custom, err := ParseCustomJSON(PyTorchTask, 1, []byte(c.custom))
			if err != nil {
				t.Fatal(err)
			}
			if len(custom.Warnings) > 0 {
				t.Errorf("unexpected warnings: %v", custom.Warnings)
			}
			if diff := cmp.Diff(c.want, jsonOf(t, custom)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseCustomRefuses(t *testing.T) {
	const prefix = "read pytorch custom: "
	for _, c := range []struct {
		name, custom, want string
	}{
		{"an enum name without its prefix", `{"runPolicy":{"cleanPodPolicy":"ALL"}}`,
			`runPolicy.cleanPodPolicy: "ALL" is unknown: want CLEANPOD_POLICY_NONE, CLEANPOD_POLICY_RUNNING or CLEANPOD_POLICY_ALL`},
		{"an enum number that is none", `{"runPolicy":{"cleanPodPolicy":7}}`,
			`runPolicy.cleanPodPolicy: 7 is unknown: want CLEANPOD_POLICY_NONE, CLEANPOD_POLICY_RUNNING or CLEANPOD_POLICY_ALL`},
		{"a restart policy Flyte lacks", `{"workerReplicas":{"common":{"restartPolicy":"RESTART_POLICY_EXIT_CODE"}}}`,
			`workerReplicas.common.restartPolicy: "RESTART_POLICY_EXIT_CODE" is unknown: want RESTART_POLICY_NEVER, RESTART_POLICY_ON_FAILURE or RESTART_POLICY_ALWAYS`},
		{"a fraction", `{"workerReplicas":{"replicas":2.5}}`, `workerReplicas.replicas: 2.5 is not a whole number`},
		{"an overflow", `{"runPolicy":{"backoffLimit":3000000000}}`, `runPolicy.backoffLimit: 3000000000 is too large: at most 2147483647`},
		{"an overflow of doubles", `{"runPolicy":{"backoffLimit":1e999}}`, `runPolicy.backoffLimit: 1e999 is too large: at most 2147483647`},
		{"a negative number", `{"runPolicy":{"backoffLimit":-1}}`, `runPolicy.backoffLimit: -1 is negative`},
		{"negative replicas", `{"workerReplicas":{"replicas":-3}}`, `workerReplicas.replicas: -3 is negative`},
		{"a word for a number", `{"runPolicy":{"backoffLimit":"many"}}`, `runPolicy.backoffLimit: want a whole number, have "many"`},
		{"a truth for a number", `{"runPolicy":{"backoffLimit":true}}`, `runPolicy.backoffLimit: want a whole number, have true`},
		{"a number for a string", `{"workerReplicas":{"image":7}}`, `workerReplicas.image: want a string, have 7`},
		{"a list for a message", `{"runPolicy":[]}`, `runPolicy: want an object, have a list`},
		{"a message for a list", `{"workerReplicas":{"resources":{"requests":{}}}}`, `workerReplicas.resources.requests: want a list, have an object`},
		{"trouble in a list", `{"workerReplicas":{"resources":{"requests":[{"name":"CPU","value":"1"},{"name":"TPU"}]}}}`,
			`workerReplicas.resources.requests[1].name: "TPU" is unknown: want UNKNOWN, CPU, GPU, MEMORY, STORAGE or EPHEMERAL_STORAGE`},
		{"a field given in both spellings", `{"runPolicy":{},"run_policy":{}}`, `runPolicy: given twice, as runPolicy and as run_policy`},
		{"no object", `[]`, `the whole: want an object, have a list`},
		{"more than one object", `{} {}`, `it is not JSON: there is more after its end`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseCustomJSON(PyTorchTask, 1, []byte(c.custom))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(prefix+c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseCustomReports(t *testing.T) {
	for _, c := range []struct {
		name, custom string
		want         []string
	}{
		{"unknown fields, wherever they are", `{"workers":2,"runPolicy":{"suspend":true}}`, []string{
			"runPolicy.suspend: RunPolicy has no such field: Flyte ignores it [unknown-field]",
			"workers: DistributedPyTorchTrainingTask has no such field: Flyte ignores it [unknown-field]",
		}},
		{"zeros that mean nothing", `{"runPolicy":{"backoffLimit":0,"ttlSecondsAfterFinished":0,"activeDeadlineSeconds":0}}`, []string{
			"runPolicy.activeDeadlineSeconds: Flyte's message cannot distinguish 0 from unset: the job has no deadline [zero-lost]",
			"runPolicy.backoffLimit: Flyte's message cannot distinguish 0 from unset: there is no retry limit [zero-lost]",
			"runPolicy.ttlSecondsAfterFinished: Flyte's message cannot distinguish 0 from unset: the finished job is never deleted [zero-lost]",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			custom, err := ParseCustomJSON(PyTorchTask, 1, []byte(c.custom))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(custom.Warnings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseCustomOfNothing(t *testing.T) {
	custom, err := ParseCustom(TensorFlowTask, 1, nil)
	if err != nil || jsonOf(t, custom) != `{}` {
		t.Errorf("a task without custom reads as %s (error %v), want an empty message", jsonOf(t, custom), err)
	}
	for _, c := range []struct {
		taskType TaskType
		version  int32
	}{{"spark", 1}, {PyTorchTask, 2}} {
		if _, err := ParseCustom(c.taskType, c.version, &structpb.Struct{}); err == nil {
			t.Errorf("task type %s, version %d, was accepted", c.taskType, c.version)
		}
	}
}

// TestFromMessage: a message may come from the wire, where JSON's checks were not made.
func TestFromMessage(t *testing.T) {
	wire, err := hex.DecodeString("48071a0420054807") // field 9 varint 7, run_policy {backoff_limit 5, field 9 varint 7}
	if err != nil {
		t.Fatal(err)
	}
	m := new(kubeflow.DistributedPyTorchTrainingTask)
	if err := proto.Unmarshal(wire, m); err != nil {
		t.Fatal(err)
	}
	custom, err := FromMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"DistributedPyTorchTrainingTask has unknown fields [unknown-field]",
		"run_policy: RunPolicy has unknown fields [unknown-field]",
	}
	if diff := cmp.Diff(want, lines(custom.Warnings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []proto.Message{
		&kubeflow.DistributedPyTorchTrainingTask{RunPolicy: &kubeflow.RunPolicy{BackoffLimit: -1}},
		&kubeflow.DistributedTensorflowTrainingTask{RunPolicy: &kubeflow.RunPolicy{CleanPodPolicy: 7}},
		&structpb.Struct{},
	} {
		if _, err := FromMessage(bad); err == nil {
			t.Errorf("%T %v was accepted", bad, bad)
		}
	}
}

func lines(warnings []Warning) []string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.String())
	}
	return all
}
