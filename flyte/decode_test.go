package flyte

import (
	"encoding/base64"
	"testing"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// template is the first vector as a TaskTemplate.
func template(t testing.TB) *core.TaskTemplate {
	t.Helper()
	custom, err := vectors[0].config.CustomConfig()
	if err != nil {
		t.Fatal(err)
	}
	s, err := custom.Struct()
	if err != nil {
		t.Fatal(err)
	}
	return &core.TaskTemplate{
		Id:              &core.Identifier{ResourceType: core.ResourceType_TASK, Project: "research", Domain: "development", Name: "train", Version: "1"},
		Type:            string(custom.TaskType),
		TaskTypeVersion: 1,
		Custom:          s,
		Target:          &core.TaskTemplate_Container{Container: &core.Container{Image: "trainer:1"}},
	}
}

func wire(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func text(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func in64(data []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(data) + "\n") }

// taskForms are the same task in every form that DecodeTask knows.
func taskForms(t testing.TB) map[string][]byte {
	task := template(t)
	spec := &admin.TaskSpec{Template: task}
	return map[string][]byte{
		"a TaskTemplate in JSON":               text(t, task),
		"a TaskTemplate in protobuf":           wire(t, task),
		"a TaskTemplate in base64 of JSON":     in64(text(t, task)),
		"a TaskTemplate in base64 of protobuf": in64(wire(t, task)),
		"a TaskSpec in JSON":                   text(t, spec),
		"a TaskSpec in protobuf":               wire(t, spec),
		"a custom in JSON":                     []byte(" " + vectors[0].json + "\n"),
		"a custom in protobuf":                 wire(t, task.GetCustom()),
		"a custom in base64 of protobuf":       in64(wire(t, task.GetCustom())),
	}
}

func TestDecodeTask(t *testing.T) {
	want, err := vectors[0].config.CustomConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range taskForms(t) {
		t.Run(name, func(t *testing.T) {
			task, err := DecodeTask(data)
			if err != nil {
				t.Fatal(err)
			}
			if task.Custom.TaskType != PyTorchTask || !proto.Equal(task.Custom.Message, want.Message) {
				t.Errorf("read %s %v, want %v", task.Custom.TaskType, task.Custom.Message, want.Message)
			}
			if got := lines(task.Lint(Execution{})); len(task.Warnings) > 0 {
				t.Errorf("unexpected warnings: %v", got)
			}
		})
	}
}

// TestDecodeEveryKeyOfACustom: a Struct begins with any of its keys, and none of them makes it look like a task.
func TestDecodeEveryKeyOfACustom(t *testing.T) {
	for _, v := range vectors {
		custom, err := v.config.CustomConfig()
		if err != nil {
			t.Fatal(err)
		}
		whole, err := custom.Struct()
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range whole.GetFields() {
			task, err := DecodeTask(wire(t, &structpb.Struct{Fields: map[string]*structpb.Value{key: value}}))
			if err != nil {
				t.Errorf("a custom that begins with %s: %v", key, err)
			} else if len(task.Custom.Warnings) > 0 {
				t.Errorf("a custom that begins with %s: %v", key, task.Custom.Warnings)
			}
		}
	}
}

func TestDecodeTaskGuessesTheTypeOfACustom(t *testing.T) {
	for data, want := range map[string]TaskType{
		vectors[1].json:                      PyTorchTask,
		vectors[5].json:                      TensorFlowTask,
		`{"chief_replicas":{}}`:              TensorFlowTask,
		`{"launcherReplicas":{},"slots":1}`:  MPITask,
		`{}`:                                 PyTorchTask,
		`{"type":"tensorflow","custom":{}}`:  TensorFlowTask,
		`{"type":"python-task","custom":{}}`: PythonTask,
	} {
		task, err := DecodeTask([]byte(data))
		if err != nil || task.Custom.TaskType != want {
			t.Errorf("%s is of type %q (error %v), want %q", data, task.Custom.TaskType, err, want)
		}
	}
}

func TestDecodeTaskReports(t *testing.T) {
	task, err := DecodeTask([]byte(`{"type":"pytorch","taskTypeVersion":1,"custom":{},"colour":"red","metadata":{"runtime":{"speed":1}},
		"interface":{"inputs":{"variables":{"epochs":{"type":{"simple":"INTEGER"},"unit":"1"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"colour: TaskTemplate has no such field: Flyte ignores it [unknown-field]",
		"interface.inputs.variables.epochs.unit: Variable has no such field: Flyte ignores it [unknown-field]",
		"metadata.runtime.speed: RuntimeMetadata has no such field: Flyte ignores it [unknown-field]",
	}
	if diff := cmp.Diff(want, lines(task.Warnings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeTaskRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                           "",
		"blanks":                            " \n",
		"base64 of blanks":                  "ICAg",
		"prose":                             "not a task",
		"broken JSON":                       `{"type":`,
		"a task type that is not a plugin":  `{"type":"spark","custom":{}}`,
		"a resource that is none":           `{"type":"pytorch","container":{"resources":{"limits":[{"name":"TPU","value":"1"}]}}}`,
		"a quantity that is none":           `{"type":"pytorch","container":{"resources":{"limits":[{"name":"CPU","value":"one"}]}}}`,
		"a pod without its container named": `{"type":"pytorch","k8sPod":{"podSpec":{"containers":[{"name":"a"}]}}}`,
		"a pod without a spec":              `{"type":"pytorch","k8sPod":{},"config":{"primary_container_name":"a"}}`,
		"a pod that is none":                `{"type":"pytorch","k8sPod":{"podSpec":{"containers":7}},"config":{"primary_container_name":"a"}}`,
		"shared memory without a place":     `{"type":"pytorch","container":{},"extendedResources":{"sharedMemory":{"mountName":"shm"}}}`,
		"a custom with an unknown enum":     `{"type":"pytorch","taskTypeVersion":1,"custom":{"runPolicy":{"cleanPodPolicy":"ALL"}}}`,
	} {
		if task, err := DecodeTask([]byte(data)); err == nil {
			t.Errorf("%s: read as %+v, want an error", name, task)
		}
	}
}
