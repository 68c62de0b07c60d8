package flyte

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/equality"
)

// FuzzDecodeTask: whatever comes in, the decoder answers, and what it accepts can be linted and rendered, each time the same, or is
// refused.
func FuzzDecodeTask(f *testing.F) {
	for _, data := range taskForms(f) {
		f.Add(data)
	}
	f.Add([]byte(`{"type":"pytorch","k8sPod":{"podSpec":{"containers":[{"name":"a"}]}},"config":{"primary_container_name":"a"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		task, err := DecodeTask(data)
		if err != nil {
			return
		}
		for _, dialect := range []Dialect{Flyte1, Flyte2} {
			run := Execution{Name: "job", Dialect: dialect}
			task.Lint(run)
			job, err := task.Render(run)
			if err != nil {
				continue
			}
			if again, err := task.Render(run); err != nil || !equality.Semantic.DeepEqual(job, again) {
				t.Fatalf("rendered again as %v (error %v), first as %v", again, err, job)
			}
			// The job may hold values an Elastic refuses, such as no processes at all.
			_, _, _, _ = FromManifest(job)
			ReadPhase(job, nil, birth, dialect)
		}
	})
}

// FuzzParseCustom: what is accepted has no negative number, comes back from its own JSON, and turns into a configuration or an error.
func FuzzParseCustom(f *testing.F) {
	for i, v := range vectors {
		f.Add(uint8(i), v.json)
	}
	f.Add(uint8(0), `{"worker_replicas":{"replicas":"2"},"runPolicy":{"cleanPodPolicy":2,"backoffLimit":0},"x":[null]}`)
	f.Add(uint8(1), `{"workers":2,"elasticConfig":{"minReplicas":1}}`)
	f.Fuzz(func(t *testing.T, choice uint8, data string) {
		taskType := []TaskType{PyTorchTask, TensorFlowTask, MPITask, PythonTask}[(choice>>1)%4]
		custom, err := ParseCustomJSON(taskType, int32(choice%2), []byte(data))
		if err != nil {
			return
		}
		rendered, err := custom.JSON()
		if err != nil {
			t.Fatalf("render what was read from %s: %v", data, err)
		}
		again, err := ParseCustomJSON(taskType, int32(choice%2), rendered)
		if err != nil {
			t.Fatalf("read %s back: %v", rendered, err)
		}
		if len(again.Warnings) > 0 || !proto.Equal(custom.Message, again.Message) {
			t.Fatalf("%s came back as %v with %v", rendered, again.Message, again.Warnings)
		}
		if config, _, err := custom.Config(); err == nil {
			if _, err := config.CustomConfig(); err != nil {
				t.Fatalf("the configuration of %s cannot be serialized: %v", rendered, err)
			}
		}
	})
}

// FuzzParseNNodes: what is accepted is a range, and is written as it was meant.
func FuzzParseNNodes(f *testing.F) {
	for _, seed := range []string{"1", "2:4", "", ":", "04:+5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseNNodes(s)
		if err != nil {
			return
		}
		if n.Min < 1 || n.Max < n.Min {
			t.Fatalf("%q reads as %+v", s, n)
		}
		if again, err := ParseNNodes(n.String()); err != nil || again != n {
			t.Fatalf("%q reads as %+v, which reads as %+v (error %v)", s, n, again, err)
		}
	})
}
