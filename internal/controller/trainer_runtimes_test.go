package controller_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/config"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// theirRuntimes are the runtimes that Trainer 2.3 publishes, as they come, by the names of their files.
func (w *world) theirRuntimes() map[string]*unstructured.Unstructured {
	w.Helper()
	source := local.Source(w, "foreign", "github.com/kubeflow/trainer/v2")
	all := map[string]*unstructured.Unstructured{}
	for _, pattern := range []string{"*_distributed.yaml", "torchtune/llama3_2/*1B.yaml"} {
		files, err := filepath.Glob(filepath.Join(source, "manifests", "base", "runtimes", pattern))
		if err != nil || len(files) == 0 {
			w.Fatalf("Trainer has no runtimes %s (%v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				w.Fatal(err)
			}
			runtime := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &runtime.Object); err != nil {
				w.Fatalf("%s: %v", file, err)
			}
			all[runtime.GetName()] = runtime
		}
	}
	return all
}

// withoutUsers removes the users and groups of pods.
func withoutUsers(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "securityContext")
		for _, inner := range v {
			withoutUsers(inner)
		}
	case []any:
		for _, inner := range v {
			withoutUsers(inner)
		}
	}
}

// meeting is what a distributed framework does first, by whatever names: the first node listens, and the others connect to it.
const meeting = `import os, socket, sys
host, port, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if rank == 0:
    server = socket.create_server(("", port))
    for _ in range(size - 1):
        server.accept()[0].sendall(b"met")
else:
    while True:
        try:
            met = socket.create_connection((host, port), 1).recv(3)
        except OSError:
            continue
        assert met == b"met", met
        break
print("rank", rank, "of", size, "met")
`

// The runtimes of Trainer 2.3 run here as they come; what cannot says what it lacks. They are cluster-wide, so each gets the name of
// this test's namespace.
func TestTheRuntimesOfTrainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runtimes := w.theirRuntimes()
	ours := &unstructured.Unstructured{}
	text, err := config.Files.ReadFile("runtimes/mpi-distributed.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &ours.Object)
	}
	if err != nil {
		t.Fatal(err)
	}
	runtimes[ours.GetName()] = ours
	script := filepath.Join(t.TempDir(), "meeting.py")
	if err := os.WriteFile(script, []byte(meeting), 0o644); err != nil {
		t.Fatal(err)
	}
	ref := func(w *world, name string) trainer.RuntimeRef {
		runtime := runtimes[name].DeepCopy()
		if os.Geteuid() != 0 { // a local cluster of an ordinary user has that user only
			withoutUsers(runtime.Object)
		}
		runtime.SetName(name + "-" + w.Namespace)
		if err := w.client.Create(w.t.Context(), runtime); err != nil {
			w.Fatal(err)
		}
		w.t.Cleanup(func() { w.Kubectl("delete", "clustertrainingruntime", runtime.GetName()) })
		return trainer.RuntimeRef{Name: runtime.GetName()}
	}
	for name, arguments := range map[string]string{
		"torch-distributed":   `$PET_MASTER_ADDR $PET_MASTER_PORT $PET_NODE_RANK $PET_NNODES`,
		"jax-distributed":     `${JAX_COORDINATOR_ADDRESS%:*} ${JAX_COORDINATOR_ADDRESS#*:} $JAX_PROCESS_ID $JAX_NUM_PROCESSES`,
		"xgboost-distributed": `$DMLC_TRACKER_URI $DMLC_TRACKER_PORT $DMLC_TASK_ID $DMLC_NUM_WORKER`,
	} {
		w.row(name+" lets the nodes meet", func(w *world) {
			w.submit(trainjob(name, func(tj *trainer.TrainJob) {
				tj.Spec.RuntimeRef = ref(w, name)
				tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(2)), Command: []string{"sh", "-c", "exec python3 " + script + " " + arguments}}
			})).becomes(kubeflowv1.JobSucceeded)
			w.says(name+"-node-0", "rank 0 of 2 met")
			w.says(name+"-node-1", "rank 1 of 2 met")
		})
	}
	for _, name := range []string{"deepspeed", "mlx"} {
		w.row(name+"-distributed lets mpirun start processes on the launcher and the other nodes", func(w *world) {
			w.submit(trainjob(name, func(tj *trainer.TrainJob) {
				tj.Spec.RuntimeRef = ref(w, name+"-distributed")
				tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(2)), Command: []string{"mpirun", "hostname"}}
			})).becomes(kubeflowv1.JobSucceeded)
			w.says(name+"-launcher-0", name+"-launcher-0", name+"-node-0")
		})
	}
	w.row("our mpi-distributed needs no command for its nodes, and no user", func(w *world) {
		w.submit(trainjob("ours", func(tj *trainer.TrainJob) {
			tj.Spec.RuntimeRef = ref(w, "mpi-distributed")
			tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(2)), NumProcPerNode: new(int32(2)), Command: []string{"mpirun", ringProgram(w.t, "openmpi"), "2"}}
		})).becomes(kubeflowv1.JobSucceeded)
		w.says("ours-launcher-0", "of 4 on ours-launcher-0", "of 4 on ours-node-0", "done: 2 laps of 4")
	})
	w.row("torchtune's initializers need a claim that the job would create", func(w *world) {
		j := w.submit(trainjob("torchtune", func(tj *trainer.TrainJob) { tj.Spec.RuntimeRef = ref(w, "torchtune-llama3.2-1b") }))
		s := j.becomes(kubeflowv1.JobFailed)
		j.conditioned("Failed", "TrainingRuntimeNotSupported")
		if want := "volumeClaimPolicies (create the claim, and name it among the volumes)"; !strings.Contains(newest(s).Message, want) {
			w.Errorf("it says %q, want %q in it", newest(s).Message, want)
		}
	})
}
