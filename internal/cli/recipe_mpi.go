package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// mpirun starts the processes of --mpi.
const mpirun = "mpirun"

// mpiStarters are programs that start processes by MPI themselves.
var mpiStarters = []string{mpirun, "mpiexec", "horovodrun"}

// mpiJob is the manifest for the flags and a command whose processes mpirun starts.
func (r *recipe) mpiJob(command []string) (*unstructured.Unstructured, error) {
	mj := &kubeflowv1.MPIJob{}
	mj.SetGroupVersionKind(kubeflowv1.GroupVersion.WithKind(kubeflowv1.MPIJobKind))
	if mj.Name = r.name; r.name == "" {
		mj.GenerateName = nameFor(command) + "-"
	}
	if !startsByMPI(command) {
		command = append([]string{mpirun}, command...)
	}
	worker := corev1.Container{Name: kubeflowv1.MPIContainer, Image: cmp.Or(r.image, "local")}
	launcher := worker
	launcher.Command = command
	for _, step := range []func() error{
		func() error { return r.setMPISize(mj) },
		func() error { return r.setPolicy(&mj.Spec.RunPolicy.LifecyclePolicy) },
		func() error {
			return r.apply(&mj.ObjectMeta, &mj.Spec.RunPolicy, &mj.Spec.MPIReplicaSpecs[kubeflowv1.MPIWorker].Template, &worker)
		},
		func() error { return r.applyToLauncher(mj, &launcher) },
	} {
		if err := step(); err != nil {
			return nil, usageError{err}
		}
	}
	roles := mj.Spec.MPIReplicaSpecs
	roles[kubeflowv1.MPILauncher].Template.Spec.Containers = []corev1.Container{launcher}
	roles[kubeflowv1.MPIWorker].Template.Spec.Containers = []corev1.Container{worker}
	if r.retries > 0 {
		roles[kubeflowv1.MPILauncher].RestartPolicy = kubeflowv1.RestartPolicyOnFailure
	}
	return withoutStatus(mj)
}

// applyToLauncher puts what the flags say into the Launcher. It trains nothing: what replicas need is for the Workers.
func (r *recipe) applyToLauncher(mj *kubeflowv1.MPIJob, c *corev1.Container) error {
	pod := r.podRecipe
	pod.cpus, pod.memory, pod.shm, pod.gpus = "", "", "", 0
	return pod.apply(&mj.ObjectMeta, &mj.Spec.RunPolicy, &mj.Spec.MPIReplicaSpecs[kubeflowv1.MPILauncher].Template, c)
}

// setMPISize reads how many Workers there are, and how many processes each has.
func (r *recipe) setMPISize(mj *kubeflowv1.MPIJob) error {
	n, err := strconv.ParseInt(r.nodes, 10, 32)
	switch {
	case strings.Contains(r.nodes, ":"):
		return fmt.Errorf("--nodes %s: a job of --mpi has a fixed number of Workers", r.nodes)
	case err != nil || n < 1:
		return fmt.Errorf("--nodes %s: use 1 or more", r.nodes)
	}
	mj.Spec.MPIReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{
		kubeflowv1.MPILauncher: {Replicas: new(int32(1))}, kubeflowv1.MPIWorker: {Replicas: new(int32(n))},
	}
	if r.nproc != "" {
		slots, err := strconv.ParseInt(r.nproc, 10, 32)
		if err != nil || slots < 1 {
			return fmt.Errorf("--nproc %s: with --mpi use 1 or more", r.nproc)
		}
		mj.Spec.SlotsPerWorker = new(int32(slots))
	}
	return nil
}

func startsByMPI(command []string) bool {
	return slices.Contains(mpiStarters, filepath.Base(command[0]))
}

// checkMPI refuses a job of --mpi on a machine without MPI, before a local cluster is started for it.
func (r *recipe) checkMPI(command []string) error {
	if !r.mpi || startsByMPI(command) {
		return nil
	}
	if _, err := exec.LookPath(mpirun); err != nil {
		return usageError{errors.New("there is no mpirun on this machine: install an MPI, as in `apt-get install openmpi-bin`")}
	}
	return nil
}
