package flyte

import (
	"errors"
	"slices"
	"strings"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// workerCommandKey is the key of TaskTemplate.config with the command of the Workers, in version 0 of MPI tasks.
const workerCommandKey = "worker_spec_command"

// mpiTask is an MPI task of either version, as Flyte's backend reads it.
type mpiTask struct {
	launcher, worker replicaSpec
	// launcherArgs and workerArgs replace the args of the task where they are not empty, and in version 0 the Workers' command and args
	// in any case. Flyte calls them commands.
	launcherArgs, workerArgs []string
	policy                   *kubeflow.RunPolicy
	slots                    int32
}

// mpi reads the message. Only version 0 reads the slots; in version 1 there is always one, and the launcher is always one.
func (t Task) mpi() mpiTask {
	if m, old := t.Custom.Message.(*plugins.DistributedMPITrainingTask); old {
		return mpiTask{
			launcher: replicaSpec{replicas: max(1, m.GetNumLauncherReplicas()), restart: RestartNever},
			worker:   replicaSpec{replicas: m.GetNumWorkers(), restart: RestartNever},
			slots:    m.GetSlots(), workerArgs: t.workerCommand,
		}
	}
	m := t.Custom.Message.(*kubeflow.DistributedMPITrainingTask)
	task := mpiTask{
		launcher: specOf(m.GetLauncherReplicas()), worker: specOf(m.GetWorkerReplicas()), policy: m.GetRunPolicy(), slots: 1,
		launcherArgs: m.GetLauncherReplicas().GetCommand(), workerArgs: m.GetWorkerReplicas().GetCommand(),
	}
	task.launcher.replicas = 1
	return task
}

// mpiJob is the job of an MPI task. In version 1 a worker without a command keeps the args of the training; the operator ignores them.
func (t Task) mpiJob(e Execution) (*kubeflowv1.MPIJob, error) {
	task := t.mpi()
	if task.worker.replicas < 1 {
		return nil, errors.New("workerReplicas.replicas: Flyte needs at least one worker")
	}
	job := &kubeflowv1.MPIJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflowv1.GroupVersion.String(), Kind: kubeflowv1.MPIJobKind},
		ObjectMeta: t.jobMeta(e),
	}
	job.Spec.SlotsPerWorker = &task.slots
	job.Spec.RunPolicy.LifecyclePolicy = lifecycleOf(task.policy)
	var err error
	roles := map[kubeflowv1.ReplicaType]replicaSpec{kubeflowv1.MPILauncher: task.launcher, kubeflowv1.MPIWorker: task.worker}
	if job.Spec.MPIReplicaSpecs, err = t.replicaSpecs(roles, kubeflowv1.MPIContainer, e); err != nil {
		return nil, err
	}
	launcher, worker := mpiContainer(job.Spec.MPIReplicaSpecs[kubeflowv1.MPILauncher]), mpiContainer(job.Spec.MPIReplicaSpecs[kubeflowv1.MPIWorker])
	if len(task.launcherArgs) > 0 {
		launcher.Args = task.launcherArgs
	}
	switch {
	case t.Custom.TaskTypeVersion == 0:
		worker.Command, worker.Args = nil, task.workerArgs
	case len(task.workerArgs) > 0:
		worker.Args = task.workerArgs
	}
	return job, nil
}

// mpiContainer is the training container of a role, which has been given that name.
func mpiContainer(role *kubeflowv1.ReplicaSpec) *corev1.Container {
	containers := role.Template.Spec.Containers
	return &containers[slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == kubeflowv1.MPIContainer })]
}

// readWorkerCommand reads what version 0 of MPI tasks keeps beside the message.
func (t *Task) readWorkerCommand(config map[string]string) {
	if command, set := config[workerCommandKey]; t.Custom.TaskType == MPITask && t.Custom.TaskTypeVersion == 0 && set {
		t.workerCommand = strings.Split(command, " ")
	}
}
