package flyte

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the manifests in testdata again")

// containerTask is a task as flyte-sdk registers it: one container.
func containerTask(t *testing.T, config Config, change ...func(*core.TaskTemplate)) Task {
	t.Helper()
	return readTask(t, taskTemplate(t, config, change...))
}

func readTask(t *testing.T, template *core.TaskTemplate) Task {
	t.Helper()
	task, err := ReadTask(template)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func taskTemplate(t *testing.T, config Config, change ...func(*core.TaskTemplate)) *core.TaskTemplate {
	t.Helper()
	custom, err := config.CustomConfig()
	if err != nil {
		t.Fatal(err)
	}
	s, err := custom.Struct()
	if err != nil {
		t.Fatal(err)
	}
	template := &core.TaskTemplate{
		Type:            string(custom.TaskType),
		TaskTypeVersion: custom.TaskTypeVersion,
		Custom:          s,
		Target: &core.TaskTemplate_Container{Container: &core.Container{
			Image: "trainer:1",
			Args:  []string{"train", "--inputs", "{{.input}}"},
			Env:   []*core.KeyValuePair{{Key: "EPOCHS", Value: "3"}},
			Resources: &core.Resources{
				Requests: []*core.Resources_ResourceEntry{{Name: core.Resources_CPU, Value: "4"}},
				Limits:   []*core.Resources_ResourceEntry{{Name: core.Resources_MEMORY, Value: "8Gi"}, {Name: core.Resources_GPU, Value: "1"}},
			},
		}},
	}
	for _, c := range change {
		c(template)
	}
	return template
}

// inPod gives the task a pod with a sidecar and labels, as a pod template in Python does.
func inPod(t *testing.T) func(*core.TaskTemplate) {
	t.Helper()
	spec, err := structpb.NewStruct(map[string]any{
		"containers": []any{
			map[string]any{"name": "logs", "image": "logs:1"},
			map[string]any{"name": "primary", "image": "trainer:1", "ports": []any{map[string]any{"containerPort": 8080}}},
		},
		"tolerations": []any{map[string]any{"key": "gpu", "operator": "Exists"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(template *core.TaskTemplate) {
		template.Config = map[string]string{"primary_container_name": "primary"}
		template.Target = &core.TaskTemplate_K8SPod{K8SPod: &core.K8SPod{
			PodSpec: spec,
			Metadata: &core.K8SObjectMetadata{
				Labels:      map[string]string{"kueue.x-k8s.io/queue-name": "research"},
				Annotations: map[string]string{"trainyard.dev/restart-scope": "Job"},
			},
		}}
		template.Metadata = &core.TaskMetadata{Metadata: &core.K8SObjectMetadata{Labels: map[string]string{"team": "vision"}}}
		template.ExtendedResources = &core.ExtendedResources{
			SharedMemory: &core.SharedMemory{MountName: "shm", MountPath: "/dev/shm", SizeLimit: "1Gi"},
		}
	}
}

// withCustom makes it a task of that version with that custom.
func withCustom(t *testing.T, version int32, custom string) func(*core.TaskTemplate) {
	t.Helper()
	return func(template *core.TaskTemplate) {
		template.TaskTypeVersion, template.Custom = version, new(structpb.Struct)
		if err := template.Custom.UnmarshalJSON([]byte(custom)); err != nil {
			t.Fatal(err)
		}
	}
}

// mpiTemplate is a task of MPI, for which this package has no configuration.
func mpiTemplate(t *testing.T, version int32, custom string, change ...func(*core.TaskTemplate)) *core.TaskTemplate {
	t.Helper()
	ofMPI := func(template *core.TaskTemplate) { template.Type = string(MPITask) }
	return taskTemplate(t, PyTorch{}, append([]func(*core.TaskTemplate){ofMPI, withCustom(t, version, custom)}, change...)...)
}

// mpiCommands sets all that a message of version 1 can set.
const mpiCommands = `{
	"launcherReplicas":{"common":{"replicas":10,"image":"launcher:1","restartPolicy":"RESTART_POLICY_ON_FAILURE"},"command":["mpirun","train"]},
	"workerReplicas":{"common":{"replicas":2,"image":"worker:1","restartPolicy":"RESTART_POLICY_ALWAYS",
		"resources":{"limits":[{"name":"CPU","value":"2"},{"name":"GPU","value":"1"}]}},"command":["/usr/sbin/sshd","-De"]},
	"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL","ttlSecondsAfterFinished":100,"activeDeadlineSeconds":200,"backoffLimit":4},"slots":2}`

func TestRender(t *testing.T) {
	run := Execution{Name: "f1-n0-0", Namespace: "research", Labels: map[string]string{"execution-id": "f1"}, ServiceAccount: "default"}
	v1, v2 := run, run
	v1.Dialect, v2.Dialect = Flyte1, Flyte2
	version0 := func(custom string) func(*core.TaskTemplate) { return withCustom(t, 0, custom) }
	for _, c := range []struct {
		name string
		task Task
		run  Execution
	}{
		{"elastic with a whole run policy", containerTask(t, vectors[0].config), v2},
		{"elastic with a whole run policy, Flyte 1", containerTask(t, vectors[0].config), v1},
		{"ten workers and nothing else, Flyte 1", containerTask(t, vectors[1].config), v1},
		{"ten workers and nothing else, whose resources Flyte 2 resets", containerTask(t, vectors[1].config), v2},
		{"a pytorch job with everything set", containerTask(t, vectors[2].config), v2},
		{"an empty run policy asks for None", containerTask(t, vectors[4].config), v2},
		{"tensorflow with one worker", containerTask(t, vectors[5].config), v1},
		{"tensorflow with all four roles", containerTask(t, vectors[6].config), v1},
		{"a master alone, Flyte 1", containerTask(t, PyTorch{}), v1},
		{"a pod with a sidecar, Flyte 1", containerTask(t, vectors[0].config, inPod(t)), v1},
		{"a pod with a sidecar, Flyte 2", containerTask(t, vectors[0].config, inPod(t)), v2},
		{"a tensorflow pod with a sidecar, Flyte 2", containerTask(t, vectors[5].config, inPod(t)), v2},
		{"version 0 of pytorch, Flyte 1", containerTask(t, vectors[1].config, version0(`{"workers":2}`)), v1},
		{"version 0 of pytorch", containerTask(t, vectors[1].config, version0(`{"workers":2}`)), v2},
		{"version 0 of pytorch, elastic", containerTask(t, vectors[1].config,
			version0(`{"workers":2,"elasticConfig":{"rdzvBackend":"c10d","minReplicas":1,"maxReplicas":2,"nprocPerNode":4}}`)), v2},
		{"version 0 of tensorflow", containerTask(t, vectors[5].config, version0(`{"workers":2,"psReplicas":1}`)), v2},
		{"mpi with a command for each role, Flyte 1", readTask(t, mpiTemplate(t, 1, mpiCommands)), v1},
		{"mpi with a command for each role", readTask(t, mpiTemplate(t, 1, mpiCommands)), v2},
		{"version 0 of mpi without slots, Flyte 1", readTask(t, mpiTemplate(t, 0, `{"numWorkers":2}`)), v1},
		{"version 0 of mpi without slots", readTask(t, mpiTemplate(t, 0, `{"numWorkers":2}`)), v2},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, err := c.task.Render(c.run)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "render", strings.NewReplacer(" ", "-", ",", "").Replace(c.name)+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The jobs of Flyte 1 are those that its own plugins make. After a change of the tasks write both again: go test ./flyte -run
// TestFlyte1sOwnPlugins -update, and (cd flyte/oracle && go run .).
func TestFlyte1sOwnPlugins(t *testing.T) {
	run := Execution{Dialect: Flyte1, Name: "f1-n0-0", Namespace: "research", Labels: map[string]string{"execution-id": "f1"}, ServiceAccount: "default"}
	pod := func(spec string) func(*core.TaskTemplate) {
		return func(template *core.TaskTemplate) {
			inPod(t)(template)
			template.GetK8SPod().PodSpec = new(structpb.Struct)
			if err := template.GetK8SPod().GetPodSpec().UnmarshalJSON([]byte(spec)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, task := range map[string]*core.TaskTemplate{
		"elastic":          taskTemplate(t, vectors[0].config),
		"workers":          taskTemplate(t, vectors[1].config),
		"everything":       taskTemplate(t, vectors[2].config),
		"empty-policy":     taskTemplate(t, vectors[4].config),
		"tensorflow":       taskTemplate(t, vectors[5].config),
		"tensorflow-roles": taskTemplate(t, vectors[6].config),
		"master-alone":     taskTemplate(t, PyTorch{}),
		"sidecar":          taskTemplate(t, vectors[0].config, inPod(t)),
		"tensorflow-pod":   taskTemplate(t, vectors[5].config, inPod(t)),
		"init-and-sidecars": taskTemplate(t, vectors[2].config, pod(`{
			"initContainers": [{"name": "fetch", "image": "fetch:1"}, {"name": "big", "image": "fetch:1", "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "3Gi"}}}],
			"containers": [
				{"name": "logs", "image": "logs:1", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
				{"name": "primary", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": "2"}}, "env": [{"name": "EPOCHS", "value": "3"}]}]}`)),
		"pytorch-0":         taskTemplate(t, PyTorch{}, withCustom(t, 0, `{"workers":2}`)),
		"pytorch-0-elastic": taskTemplate(t, PyTorch{}, withCustom(t, 0, `{"workers":2,"elasticConfig":{"rdzvBackend":"c10d","minReplicas":1,"maxReplicas":2,"nprocPerNode":4}}`)),
		"tensorflow-0":      taskTemplate(t, TensorFlow{}, withCustom(t, 0, `{"workers":2,"psReplicas":1,"chiefReplicas":1,"evaluatorReplicas":1}`)),
		"mpi":               mpiTemplate(t, 1, `{"launcherReplicas":{"replicas":10},"workerReplicas":{"replicas":10},"slots":2}`),
		"mpi-commands":      mpiTemplate(t, 1, mpiCommands),
		"mpi-pod":           mpiTemplate(t, 1, mpiCommands, inPod(t)),
		"mpi-0":             mpiTemplate(t, 0, `{"numWorkers":100,"numLauncherReplicas":1,"slots":4}`),
		"mpi-0-without-slots": mpiTemplate(t, 0, `{"numWorkers":2}`, func(template *core.TaskTemplate) {
			template.GetContainer().Command = []string{"horovodrun"}
		}),
		"mpi-0-worker-command": mpiTemplate(t, 0, `{"numWorkers":2,"numLauncherReplicas":2}`, func(template *core.TaskTemplate) {
			template.GetContainer().Command = []string{"horovodrun"}
			template.Config = map[string]string{"worker_spec_command": "/usr/sbin/sshd -De"}
		}),
		"mpi-0-empty-worker-command": mpiTemplate(t, 0, `{"numWorkers":2}`, func(template *core.TaskTemplate) {
			template.Config = map[string]string{"worker_spec_command": ""}
		}),
		"mpi-0-pod":    mpiTemplate(t, 0, `{"numWorkers":2}`, inPod(t)),
		"no-resources": taskTemplate(t, vectors[2].config, func(template *core.TaskTemplate) { template.GetContainer().Resources = nil }),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "flyte1", name)
			if *update {
				text, err := protojson.Marshal(task)
				if err == nil {
					err = os.WriteFile(file+".task.json", text, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(file + ".task.json")
			if err != nil {
				t.Fatal(err)
			}
			written := &core.TaskTemplate{}
			if err := protojson.Unmarshal(text, written); err != nil || !proto.Equal(task, written) {
				t.Fatalf("the task is another than that of its file (%v): write it again", err)
			}
			read, err := ReadTask(task)
			if err != nil {
				t.Fatal(err)
			}
			job, err := read.Render(run)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := os.ReadFile(file + ".job.yaml")
			if err != nil {
				t.Fatal(err)
			}
			ours, err := yaml.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(withoutStatus(t, theirs), withoutStatus(t, ours)); diff != "" {
				t.Errorf("(-Flyte's +ours):\n%s", diff)
			}
		})
	}
}

// withoutStatus is a job without its status, the empty times and the empty run policy, which Training Operator's types print and ours
// do not.
func withoutStatus(t *testing.T, text []byte) string {
	t.Helper()
	job := map[string]any{}
	if err := yaml.Unmarshal(text, &job); err != nil {
		t.Fatal(err)
	}
	delete(job, "status")
	prune(job)
	text, err := yaml.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func prune(object map[string]any) {
	if time, has := object["creationTimestamp"]; has && time == nil {
		delete(object, "creationTimestamp")
	}
	for _, value := range object {
		if below, ok := value.(map[string]any); ok {
			prune(below)
		}
	}
	if policy, ok := object["runPolicy"].(map[string]any); ok && len(policy) == 0 {
		delete(object, "runPolicy")
	}
}

func TestRenderRefuses(t *testing.T) {
	mpi, err := ParseCustomJSON(MPITask, 1, []byte(`{"slots":1}`))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := vectors[1].config.CustomConfig()
	if err != nil {
		t.Fatal(err)
	}
	two := containerTask(t, vectors[0].config, inPod(t))
	two.Pod.Primary = ""
	gone := containerTask(t, vectors[0].config, inPod(t))
	gone.Pod.Primary = "trainer"
	for _, c := range []struct {
		name string
		task Task
		want string
	}{
		{"one node", containerTask(t, NewElastic(Nodes(1), 8)), "render job: a task of one node becomes a pod, not a job"},
		{"MPI", Task{Custom: mpi}, "render job: workerReplicas.replicas: Flyte needs at least one worker"},
		{"no workers, Flyte 2", containerTask(t, PyTorch{}), "render job: workerReplicas.replicas: 0: Flyte 2 needs at least one worker"},
		{"no tensorflow workers", containerTask(t, TensorFlow{PS: Group{Replicas: 1}}), "render job: workerReplicas.replicas: Flyte needs at least one worker"},
		{"no pod", Task{Custom: bare}, "render job: Master: the task has no container and no pod: give it a pod template"},
		{"two containers and no word which trains", two, "render job: Worker: the pod has 2 containers: say which one trains"},
		{"a training container that is not there", gone, `render job: Worker: the pod has no container "trainer"`},
		{"resources that are none", containerTask(t, PyTorch{Worker: Group{Replicas: 1, Replica: Replica{Requests: Resources{CPU: "two"}}}}),
			`render job: Worker: resources: requests: CPU "two": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.task.Render(Execution{Name: "job"})
			if err == nil {
				t.Fatal("it was rendered")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadTaskReports(t *testing.T) {
	task := containerTask(t, vectors[0].config, inPod(t), func(template *core.TaskTemplate) {
		template.Metadata.PodTemplateName = "gpu-nodes"
		template.ExtendedResources.GpuAccelerator = &core.GPUAccelerator{Device: "nvidia-tesla-a100"}
		template.GetK8SPod().GetPodSpec().Fields["hostNetwrok"] = structpb.NewBoolValue(true)
	})
	want := []string{
		`k8sPod.podSpec: unknown field "hostNetwrok" [unknown-field]`,
		`metadata.podTemplateName: Flyte lays the pod over its cluster's PodTemplate "gpu-nodes", which is not here [not-carried]`,
		`extendedResources.gpuAccelerator: the node labels of "nvidia-tesla-a100" are part of Flyte's configuration [not-carried]`,
	}
	if diff := cmp.Diff(want, lines(task.Warnings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIncreaseSharedMemory(t *testing.T) {
	pod := basePod()
	if err := pod.IncreaseSharedMemory(); err != nil {
		t.Fatal(err)
	}
	want := basePod()
	want.Template.Spec.Volumes = []corev1.Volume{{
		Name:         "shm",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
	}}
	want.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := new(Pod).IncreaseSharedMemory(); err == nil {
		t.Error("a pod without containers was given memory")
	}
}
