package flyte

import (
	"strings"
	"testing"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// mpiTemplate is a task of MPI with a custom of a version.
func mpiTemplate(t *testing.T, version int32, custom string, config map[string]string) Task {
	t.Helper()
	template := &core.TaskTemplate{Type: string(MPITask), TaskTypeVersion: version, Custom: new(structpb.Struct), Config: config,
		Target: &core.TaskTemplate_Container{Container: &core.Container{Image: "train", Args: []string{"mpirun", "-np", "2", "python", "train.py"}}}}
	if err := template.Custom.UnmarshalJSON([]byte(custom)); err != nil {
		t.Fatal(err)
	}
	task, err := ReadTask(template)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// What flyteplugins makes of the messages of its own tests, of both versions.
func TestMPIJobs(t *testing.T) {
	type made struct {
		Launchers, Workers, Slots  int32
		LauncherArgs, WorkerArgs   string
		LauncherImage, WorkerImage string
		LauncherPolicy, Policy     string
		Clean                      string
	}
	training := "mpirun -np 2 python train.py"
	for _, row := range []struct {
		sentence string
		task     Task
		want     made
	}{
		{"version 0: launchers, workers and slots are numbers", mpiTemplate(t, 0, `{"numWorkers":100,"numLauncherReplicas":1,"slots":4}`, nil),
			made{1, 100, 4, training, training, "train", "train", "Never", "Never", ""}},
		{"version 0 without launchers has one, and without slots none", mpiTemplate(t, 0, `{"numWorkers":2}`, nil),
			made{1, 2, 0, training, training, "train", "train", "Never", "Never", ""}},
		{"version 0 has the workers' command in its configuration", mpiTemplate(t, 0, `{"numWorkers":2}`, map[string]string{"worker_spec_command": "/usr/sbin/sshd -De"}),
			made{1, 2, 0, training, "/usr/sbin/sshd -De", "train", "train", "Never", "Never", ""}},
		{"version 1 has one launcher and one slot, whatever it says", mpiTemplate(t, 1, `{"launcherReplicas":{"replicas":10},"workerReplicas":{"replicas":10},"slots":2}`, nil),
			made{1, 10, 1, training, training, "train", "train", "Never", "Never", ""}},
		{"version 1 has commands, images and policies of roles, and a run policy", mpiTemplate(t, 1, `{
			"launcherReplicas":{"common":{"image":"l","restartPolicy":"RESTART_POLICY_ON_FAILURE"},"command":["mpirun","a"]},
			"workerReplicas":{"common":{"replicas":2,"image":"w","restartPolicy":"RESTART_POLICY_ALWAYS"},"command":["/usr/sbin/sshd","-De"]},
			"runPolicy":{"cleanPodPolicy":"CLEANPOD_POLICY_ALL"}}`, nil),
			made{1, 2, 1, "mpirun a", "/usr/sbin/sshd -De", "l", "w", "OnFailure", "Always", "All"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			job, err := row.task.Render(Execution{Name: "f1", Dialect: Flyte1})
			if err != nil {
				t.Fatal(err)
			}
			spec := job.(*kubeflowv1.MPIJob).Spec
			launcher, worker := spec.MPIReplicaSpecs[kubeflowv1.MPILauncher], spec.MPIReplicaSpecs[kubeflowv1.MPIWorker]
			l, w := launcher.Template.Spec.Containers[0], worker.Template.Spec.Containers[0]
			got := made{*launcher.Replicas, *worker.Replicas, *spec.SlotsPerWorker, strings.Join(l.Args, " "), strings.Join(w.Args, " "),
				l.Image, w.Image, string(launcher.RestartPolicy), string(worker.RestartPolicy), ""}
			if p := spec.RunPolicy.CleanPodPolicy; p != nil {
				got.Clean = string(*p)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if l.Name != "mpi" || w.Name != "mpi" {
				t.Errorf("the containers are named %s and %s", l.Name, w.Name)
			}
		})
	}
}
