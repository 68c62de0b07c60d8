package controller_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// ringProgram is the program of examples/mpijob, compiled for an implementation of MPI, as Debian calls it.
func ringProgram(t *testing.T, implementation string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ring")
	if out, err := exec.CommandContext(t.Context(), "mpicc."+implementation, "-o", path, "../../examples/mpijob/ring.c").CombinedOutput(); err != nil {
		t.Fatalf("compiling the ring (make setup installs what it needs): %v: %s", err, out)
	}
	return path
}

// mpiJob is a job whose Launcher runs mpirun with these arguments.
func mpiJob(version, spec string, workers int, args ...string) string {
	return fmt.Sprintf(`apiVersion: kubeflow.org/%s
kind: MPIJob
metadata: {name: demo}
spec:
  %s
  mpiReplicaSpecs:
    Launcher:
      restartPolicy: OnFailure
      template: {spec: {terminationGracePeriodSeconds: 1, containers: [{name: mpi, image: none, command: ["%s"]}]}}
    Worker:
      replicas: %d
      template: {spec: {terminationGracePeriodSeconds: 1, containers: [{name: mpi, image: none}]}}
`, version, spec, strings.Join(args, `", "`), workers)
}

// A real mpirun starts real processes in other pods. It is killed in the middle, and the next attempt goes on with the lap it had come to.
func TestAnMPIRingSurvivesTheDeathOfItsLauncher(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	laps := filepath.Join(local.Folder(t), "laps")
	w.Apply(mpiJob("v1", "runPolicy: {backoffLimit: 1}", 2, "mpirun", ringProgram(t, "openmpi"), "40", "250", laps))
	w.Await("lap 3: the token is 1", "logs", "demo-launcher", "-c", "mpi")
	w.Try("", "exec", "demo-launcher", "-c", "mpi", "--", "sh", "-c", "kill -KILL $(pidof mpirun.openmpi mpirun orterun)") // may die with its container
	j := &training{world: w, name: "demo", empty: &kubeflowv1.MPIJob{}}
	s := j.becomes(kubeflowv1.JobSucceeded)
	if s.Retries != 1 || s.Attempt != 1 || s.LastFailure == nil || s.LastFailure.Pod != "demo-launcher" {
		t.Errorf("the status is\n%s", describe(s))
	}
	w.says("demo-launcher", "rank 0 of 2 on demo-worker-0, attempt 1", "rank 1 of 2 on demo-worker-1, attempt 1", "done: 40 laps of 2")
	if log := w.Logs("demo-launcher"); strings.Contains(log, "lap 0:") {
		t.Errorf("it has begun from the beginning:\n%s", log)
	}
	w.Eventually("the Workers, which would serve forever, are gone", func() error {
		if o := w.Try("", "get", "pods", "-o", "name"); strings.Contains(o.Stdout, "worker") {
			return fmt.Errorf("there are %s", o.Stdout)
		}
		return nil
	})
}

// A job of mpi-operator, with sshd as its Workers' command, runs on four pods with two processes each. The Launcher is a fifth host.
func TestAnMPIRingOverFourPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	manifest := mpiJob("v2beta1", "slotsPerWorker: 2\n  runLauncherAsWorker: true\n  launcherCreationPolicy: WaitForWorkersReady", 3, "mpirun", ringProgram(t, "openmpi"), "3")
	w.Apply(strings.Replace(manifest, "image: none}]}}\n", "image: none, command: [/usr/sbin/sshd, -De]}]}}\n", 1))
	j := &training{world: w, name: "demo", empty: &kubeflowv1.MPIJob{}}
	if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 || s.ReplicaStatuses["Launcher"].Succeeded != 1 {
		t.Errorf("the status is\n%s", describe(s))
	}
	w.says("demo-launcher", "of 8 on demo-launcher", "of 8 on demo-worker-0", "of 8 on demo-worker-2", "lap 2: the token is 28", "done: 3 laps of 8")
	var mj kubeflowv1.MPIJob
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "demo"}, &mj); err != nil || !mj.IsV2beta1() {
		t.Errorf("the stored job does not know its version (%v): %+v", err, mj.Spec)
	}
}

// When a job is suspended, its ranks get SIGTERM, and time to save what they have.
func TestTheRanksOfASuspendedMPIJobCanSave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := local.Folder(t)
	rank := fmt.Sprintf("trap 'echo saved > %s/$OMPI_COMM_WORLD_RANK; exit 0' TERM; echo ready; while :; do sleep 0.1; done", folder)
	manifest := mpiJob("v1", "runPolicy: {backoffLimit: 0}", 2, "mpirun", "sh", "-c", rank)
	w.Apply(strings.ReplaceAll(manifest, "terminationGracePeriodSeconds: 1,", "terminationGracePeriodSeconds: 60,"))
	w.Await("ready\nready", "logs", "demo-launcher", "-c", "mpi")
	j := &training{world: w, name: "demo", empty: &kubeflowv1.MPIJob{}}
	j.edit(suspended(true))
	w.Eventually("its pods are gone", func() error {
		if n := len(j.pods()); n > 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for _, rank := range []string{"0", "1"} {
		if text, err := os.ReadFile(filepath.Join(folder, rank)); err != nil || string(text) != "saved\n" {
			t.Errorf("rank %s has not saved: %q (%v)", rank, text, err)
		}
	}
}
