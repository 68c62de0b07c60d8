package flyte

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
)

// vectors are what flyte-sdk's and flytekit's own tests serialize, with the bytes Flyte's generated code gives for them.
var vectors = []struct {
	name   string
	config Config
	json   string
	hex    string
}{
	{
		name: "flyte-sdk: Elastic with a whole run policy",
		config: func() Config {
			e := NewElastic(Nodes(2), 2)
			e.RunPolicy = &RunPolicy{
				CleanPodPolicy:          "all",
				TTLSecondsAfterFinished: new(int32(100)),
				ActiveDeadlineSeconds:   new(int32(200)),
				BackoffLimit:            new(int32(4)),
			}
			return e
		}(),
		json: `{"workerReplicas":{"replicas":2},` +
			`"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","ttlSecondsAfterFinished":100,"activeDeadlineSeconds":200,"backoffLimit":4},` +
			`"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":2,"nprocPerNode":2,"maxRestarts":3}}`,
		hex: "0a0208021a090802106418c8012004220e0a04633130641002180220022803",
	},
	{
		name:   "flytekit: PyTorch with ten workers and nothing else",
		config: PyTorch{Worker: Group{Replicas: 10}},
		json:   `{"workerReplicas":{"replicas":10,"resources":{}},"masterReplicas":{"replicas":1,"resources":{}}}`,
		hex:    "0a04080a1a00120408011a00",
	},
	{
		name: "flytekit: PyTorch with everything set",
		config: PyTorch{
			Master: Replica{RestartPolicy: RestartAlways},
			Worker: Group{Replicas: 5, Replica: Replica{
				Image:         "worker:latest",
				Requests:      Resources{CPU: "2", Memory: "2Gi"},
				Limits:        Resources{CPU: "4", Memory: "2Gi"},
				RestartPolicy: RestartOnFailure,
			}},
			RunPolicy: &RunPolicy{
				CleanPodPolicy:          CleanPodAll,
				BackoffLimit:            new(int32(5)),
				ActiveDeadlineSeconds:   new(int32(100)),
				TTLSecondsAfterFinished: new(int32(100)),
			},
		},
		json: `{"workerReplicas":{"replicas":5,"image":"worker:latest","resources":{` +
			`"requests":[{"name":"CPU","value":"2"},{"name":"MEMORY","value":"2Gi"}],` +
			`"limits":[{"name":"CPU","value":"4"},{"name":"MEMORY","value":"2Gi"}]},"restartPolicy":"RESTART_POLICY_ON_FAILURE"},` +
			`"masterReplicas":{"replicas":1,"resources":{},"restartPolicy":"RESTART_POLICY_ALWAYS"},` +
			`"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","ttlSecondsAfterFinished":100,"activeDeadlineSeconds":100,"backoffLimit":5}}`,
		hex: "0a350805120d776f726b65723a6c61746573741a200a0508011201320a0708031203324769120508011201341207080312033247692001" +
			"120608011a0020021a080802106418642005",
	},
	{
		name: "flytekit: Elastic whose run policy leaves the backoff limit out",
		config: func() Config {
			e := NewElastic(Nodes(2), 2)
			e.MaxRestarts = 0
			e.RunPolicy = &RunPolicy{
				CleanPodPolicy:          CleanPodAll,
				TTLSecondsAfterFinished: new(int32(600)),
				ActiveDeadlineSeconds:   new(int32(36000)),
			}
			return e
		}(),
		json: `{"workerReplicas":{"replicas":2},` +
			`"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","ttlSecondsAfterFinished":600,"activeDeadlineSeconds":36000},` +
			`"elasticConfig":{"rdzvBackend":"c10d","minReplicas":2,"maxReplicas":2,"nprocPerNode":2}}`,
	},
	{
		name: "an empty run policy is kept as an empty message",
		config: func() Config {
			e := NewElastic(NNodes{Min: 1, Max: 2, Text: true}, 4)
			e.MaxRestarts = 0
			e.RunPolicy = &RunPolicy{}
			return e
		}(),
		json: `{"workerReplicas":{"replicas":2},"runPolicy":{},` +
			`"elasticConfig":{"rdzvBackend":"c10d","minReplicas":1,"maxReplicas":2,"nprocPerNode":4}}`,
		hex: "0a0208021a00220c0a0463313064100118022004",
	},
	{
		name: "flytekit: TensorFlow with one worker and a run policy",
		config: TensorFlow{
			Worker: Group{Replicas: 1},
			RunPolicy: &RunPolicy{
				CleanPodPolicy:          CleanPodRunning,
				BackoffLimit:            new(int32(5)),
				ActiveDeadlineSeconds:   new(int32(100)),
				TTLSecondsAfterFinished: new(int32(100)),
			},
		},
		json: `{"workerReplicas":{"replicas":1,"resources":{}},"psReplicas":{"resources":{}},"chiefReplicas":{"resources":{}},` +
			`"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_RUNNING","ttlSecondsAfterFinished":100,"activeDeadlineSeconds":100,"backoffLimit":5},` +
			`"evaluatorReplicas":{"resources":{}}}`,
		hex: "0a0408011a0012021a001a021a00220808011064186420052a021a00",
	},
	{
		name: "flytekit: TensorFlow with all four roles",
		config: TensorFlow{
			Chief: Group{Replicas: 1, Replica: Replica{
				Image: "chief:latest", Requests: Resources{CPU: "1"}, Limits: Resources{CPU: "2"},
			}},
			Worker:    Group{Replicas: 5, Replica: Replica{RestartPolicy: RestartOnFailure}},
			PS:        Group{Replicas: 2, Replica: Replica{RestartPolicy: RestartAlways}},
			Evaluator: Group{Replicas: 5, Replica: Replica{RestartPolicy: RestartOnFailure}},
		},
		json: `{"workerReplicas":{"replicas":5,"resources":{},"restartPolicy":"RESTART_POLICY_ON_FAILURE"},` +
			`"psReplicas":{"replicas":2,"resources":{},"restartPolicy":"RESTART_POLICY_ALWAYS"},` +
			`"chiefReplicas":{"replicas":1,"image":"chief:latest","resources":{` +
			`"requests":[{"name":"CPU","value":"1"}],"limits":[{"name":"CPU","value":"2"}]}},` +
			`"evaluatorReplicas":{"replicas":5,"resources":{},"restartPolicy":"RESTART_POLICY_ON_FAILURE"}}`,
	},
	{
		name:   "flytekit: TensorFlow by its deprecated counts",
		config: TensorFlow{Worker: Group{Replicas: 10}, PS: Group{Replicas: 1}, Chief: Group{Replicas: 1}, Evaluator: Group{Replicas: 1}},
		json: `{"workerReplicas":{"replicas":10,"resources":{}},"psReplicas":{"replicas":1,"resources":{}},` +
			`"chiefReplicas":{"replicas":1,"resources":{}},"evaluatorReplicas":{"replicas":1,"resources":{}}}`,
	},
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			custom, err := v.config.CustomConfig()
			if err != nil {
				t.Fatal(err)
			}
			if custom.TaskTypeVersion != 1 {
				t.Errorf("task type version is %d, want 1", custom.TaskTypeVersion)
			}
			if diff := cmp.Diff(v.json, jsonOf(t, custom)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			if v.hex != "" {
				if diff := cmp.Diff(v.hex, hexOf(t, custom.Message)); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
			back, err := ParseCustomJSON(custom.TaskType, 1, []byte(v.json))
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(back.Message, custom.Message) {
				t.Errorf("read back as %v, want %v", back.Message, custom.Message)
			}
		})
	}
}

// TestStructVector holds the bytes of TaskTemplate.custom itself: sorted keys, and every number a double.
func TestStructVector(t *testing.T) {
	custom, err := vectors[0].config.CustomConfig()
	if err != nil {
		t.Fatal(err)
	}
	s, err := custom.Struct()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hexOf(t, s), "0a95010a0d656c6173746963436f6e666967"; !strings.HasPrefix(got, want) {
		t.Errorf("the Struct is %s…, want %s…", got[:len(want)], want)
	}
}

// TestHorovodVector: MPI messages are read and written, though no configuration is made of them.
func TestHorovodVector(t *testing.T) {
	const (
		wire = "0a3908011a002a0e2f7573722f7362696e2f737368642a032d44652a022d662a1a2f686f6d652f6a6f62757365722f2e737368645f636f6e666967" +
			"121208011a0e0a050801120131120508011201321a061064186420052002"
		text = `{"workerReplicas":{"replicas":1,"resources":{},` +
			`"command":["/usr/sbin/sshd","-De","-f","/home/jobuser/.sshd_config"]},` +
			`"launcherReplicas":{"replicas":1,"resources":{"requests":[{"name":"CPU","value":"1"}],"limits":[{"name":"CPU","value":"2"}]}},` +
			`"runPolicy":{"ttlSecondsAfterFinished":100,"activeDeadlineSeconds":100,"backoffLimit":5},"slots":2}`
	)
	custom, err := ParseCustomJSON(MPITask, 1, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wire, hexOf(t, custom.Message)); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(text, jsonOf(t, custom)); diff != "" {
		t.Errorf("JSON, in which the clean pod policy NONE vanishes (-want +got):\n%s", diff)
	}
	again, err := FromMessage(custom.Message)
	if err != nil || again.TaskType != MPITask {
		t.Errorf("the message is of task type %q (error %v), want mpi", again.TaskType, err)
	}
}

func TestTaskType(t *testing.T) {
	text := func(s string) NNodes {
		n, err := ParseNNodes(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		name   string
		nnodes NNodes
		want   TaskType
	}{
		{"one node makes an ordinary task", Nodes(1), PythonTask},
		{"one node, written as text, makes a job", text("1"), PyTorchTask},
		{"a range that is one node makes a job", text("1:1"), PyTorchTask},
		{"two nodes make a job", Nodes(2), PyTorchTask},
		{"a range makes a job", text("1:4"), PyTorchTask},
	} {
		t.Run(c.name, func(t *testing.T) {
			custom, err := NewElastic(c.nnodes, 1).CustomConfig()
			if err != nil {
				t.Fatal(err)
			}
			if custom.TaskType != c.want {
				t.Errorf("task type is %s, want %s", custom.TaskType, c.want)
			}
		})
	}
}

func jsonOf(t *testing.T, c Custom) string {
	t.Helper()
	data, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func hexOf(t *testing.T, m proto.Message) string {
	t.Helper()
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(wire)
}
