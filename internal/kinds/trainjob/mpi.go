package trainjob

import (
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/mpirun"
	"github.com/trainyard/trainyard/internal/manifest"
)

// mpiNodes is the step on whose pods mpirun starts processes, as Trainer names it. The step that trains runs mpirun.
const mpiNodes = "node"

// mpi lets the step that trains start processes on the nodes by mpirun. The job ends with it. The job's numNodes counts the launcher only
// where it has processes, too.
func mpi(m *manifest.Manifest, spec *trainer.TrainingRuntimeSpec, tj *trainer.TrainJob) error {
	policy, launcher := spec.MLPolicy.MPI, m.Leader.Role
	if launcher == mpiNodes || m.Templates[mpiNodes] == nil {
		return invalid(tj, "has mlPolicy.mpi, for which it needs a step %s besides the one that trains: add it", mpiNodes)
	}
	server := naming.TrainingContainer(&m.Templates[mpiNodes].Spec, trainer.ContainerNode)
	if server == nil {
		return invalid(tj, "has no container in its step %s: add one", mpiNodes)
	}
	works := policy.RunLauncherAsNode != nil && *policy.RunLauncherAsNode
	awaited := setMPISizes(m, nodes(spec, tj), works)
	m.Job.Success = job.Success{Role: launcher, Rule: job.SuccessAll}
	m.KeySecret = manifest.KeySecretName(m.Job)
	m.Agent = manifest.DefaultAgent
	overlayMPINodes(server, tj.Spec.Trainer)
	gang := mpirun.Gang{
		Manifest: m, Launcher: m.Leader, Workers: mpiNodes, Slots: mpiSlots(policy, trainingContainer(m), tj), LauncherWorks: works,
		Implementation: kubeflowv1.MPIImplementationOpenMPI, LongNames: true, KeysAt: "/root/.ssh", Awaited: awaited, OwnServer: mpirun.ServesItself(server),
	}
	if path := policy.SSHAuthMountPath; path != nil && *path != "" {
		gang.KeysAt = *path
	}
	m.Equip = func(pod *corev1.Pod, r job.Replica) {
		if c := naming.TrainingContainer(&pod.Spec, trainer.ContainerNode); c != nil && (r == m.Leader || r.Role == mpiNodes) {
			gang.Equip(pod, r, c)
		}
	}
	m.Env = func(r job.Replica, _ int32) manifest.Env {
		if r != m.Leader {
			return manifest.Env{}
		}
		return manifest.Env{Training: gang.Environment()}
	}
	return nil
}

// setMPISizes makes one launcher, and nodes for the rest. It reports whether the launcher waits until they are ready.
func setMPISizes(m *manifest.Manifest, nodes int32, launcherWorks bool) (awaited bool) {
	if launcherWorks {
		nodes--
	}
	for i := range m.Job.Roles {
		switch role := &m.Job.Roles[i]; role.Name {
		case m.Leader.Role:
			role.Replicas, role.MayFinish = 1, false
			for _, d := range role.After {
				awaited = awaited || d.Role == mpiNodes
			}
		case mpiNodes:
			role.Replicas, role.MayFinish = nodes, false
		}
	}
	return awaited
}

// overlayMPINodes gives the nodes what the job says of the trainer, except its command: they serve the launcher.
func overlayMPINodes(node *corev1.Container, t *trainer.Trainer) {
	if t != nil {
		own := *t
		own.Command, own.Args = nil, nil
		overlayTrainer(node, &own)
	}
}

// mpiSlots is how many processes each pod has: as many as the job says, else the runtime, else one per GPU.
func mpiSlots(policy *trainer.MPIMLPolicySource, node *corev1.Container, tj *trainer.TrainJob) int32 {
	if t := tj.Spec.Trainer; t != nil && t.NumProcPerNode != nil {
		return *t.NumProcPerNode
	}
	if n := policy.NumProcPerNode; n != nil && *n != 1 {
		return *n
	}
	return int32(max(gpus(node.Resources), 1))
}
