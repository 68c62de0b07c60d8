// Package mpi answers what is particular to MPIJobs. The Launcher runs mpirun, which starts the processes on the Workers, and the job
// ends with it. They are one gang: a failure restarts the whole job. A job is written for Training Operator (v1) or for mpi-operator
// (v2beta1), which differ in names and in what a Worker without command does.
package mpi

import (
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/kinds/mpirun"
	"github.com/trainyard/trainyard/internal/manifest"
)

const (
	launcher = string(kubeflowv1.MPILauncher)
	worker   = string(kubeflowv1.MPIWorker)
)

// Kind is the adapter of MPIJobs.
var Kind = kubeflow.Kind{
	Layout:      kubeflowv1.MPILayout,
	Empty:       func() kubeflowv1.Job { return &kubeflowv1.MPIJob{} },
	Label:       "mpi",
	Scope:       job.ScopeJob,
	Leaders:     []kubeflowv1.ReplicaType{kubeflowv1.MPILauncher},
	Complete:    complete,
	Equip:       equip,
	Environment: environment,
}

// complete sets what differs from other kinds: who may manage the job, that its Workers, which are servers, never finish by themselves,
// and when the Launcher is created.
func complete(m *manifest.Manifest, obj kubeflowv1.Job) {
	mj := obj.(*kubeflowv1.MPIJob)
	if by := m.Job.Policy.ManagedBy; by != nil && *by == kubeflowv1.ManagedByMPIOperator {
		m.Job.Manager = *by
	}
	for i := range m.Job.Roles {
		role := &m.Job.Roles[i]
		role.MayFinish = false
		if role.Name != launcher {
			continue
		}
		role.Single = true
		if mj.Spec.LauncherCreationPolicy == kubeflowv1.LauncherWaitForWorkersReady && m.Has(worker) {
			role.After = []job.Dependency{{Role: worker, Until: job.MilestoneReady}}
		}
	}
	m.KeySecret = manifest.KeySecretName(m.Job)
}

func gang(m *manifest.Manifest, mj *kubeflowv1.MPIJob) mpirun.Gang {
	return mpirun.Gang{
		Manifest: m, Launcher: m.Leader, Workers: worker, Slots: *mj.Spec.SlotsPerWorker, LauncherWorks: *mj.Spec.RunLauncherAsWorker,
		Implementation: mj.Spec.MPIImplementation, LongNames: mj.IsV2beta1(), KeysAt: mj.Spec.SSHAuthMountPath, OwnServer: ownServer(m, mj),
		Awaited: mj.Spec.LauncherCreationPolicy == kubeflowv1.LauncherWaitForWorkersReady,
	}
}

// ownServer reports whether the Workers serve connections by a command of their own. Only jobs of v2beta1 do: in v1 the server runs
// beside whatever command they have.
func ownServer(m *manifest.Manifest, mj *kubeflowv1.MPIJob) bool {
	template := m.Templates[worker]
	if template == nil || !mj.IsV2beta1() {
		return false
	}
	c := naming.TrainingContainer(&template.Spec, kubeflowv1.MPIContainer)
	return c != nil && mpirun.ServesItself(c)
}

// equip completes a pod. A Worker of v1 without a command serves connections, whatever its args are: Flyte leaves those of the training
// there.
func equip(m *manifest.Manifest, obj kubeflowv1.Job, pod *corev1.Pod, r job.Replica) {
	mj := obj.(*kubeflowv1.MPIJob)
	container := naming.TrainingContainer(&pod.Spec, kubeflowv1.MPIContainer)
	if container == nil {
		return
	}
	command := slices.Concat(container.Command, container.Args)
	beside := r.Role == worker && !mj.IsV2beta1() && len(container.Command) > 0 && filepath.Base(command[0]) != "sshd"
	g := gang(m, mj)
	g.Equip(pod, r, container)
	if beside {
		g.Serve(container, command)
	}
	if mj.IsV2beta1() {
		pod.Labels[naming.LabelJobRole] = map[string]string{launcher: "launcher", worker: "worker"}[r.Role]
	}
}

func environment(m *manifest.Manifest, obj kubeflowv1.Job, r job.Replica, _ int32) manifest.Env {
	role := []corev1.EnvVar{{Name: "K_MPI_JOB_ROLE", Value: map[string]string{launcher: "launcher", worker: "worker"}[r.Role]}}
	if r.Role == worker {
		return manifest.Env{Training: role}
	}
	return manifest.Env{Training: append(role, gang(m, obj.(*kubeflowv1.MPIJob)).Environment()...)}
}
