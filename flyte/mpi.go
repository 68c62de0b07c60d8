package flyte

import (
	"errors"
	"strings"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// workerCommandKey is the key of TaskTemplate.config with the command of the Workers, in version 0 of MPI tasks.
const workerCommandKey = "worker_spec_command"

// mpiTask is an MPI task of either version, as Flyte's backend reads it.
type mpiTask struct {
	launcher, worker replicaSpec
	// launcherArgs and workerArgs replace the args of the task where they are not empty. Flyte calls them commands.
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

// mpiJob is the job of an MPI task. A worker without a command keeps the args of the training; the operator ignores them.
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
	for role, args := range map[kubeflowv1.ReplicaType][]string{kubeflowv1.MPILauncher: task.launcherArgs, kubeflowv1.MPIWorker: task.workerArgs} {
		setArgs(job.Spec.MPIReplicaSpecs[role], args, t.Custom.TaskTypeVersion == 0)
	}
	return job, nil
}

// setArgs gives the training container of a role its own args. Version 0 empties the command, too.
func setArgs(role *kubeflowv1.ReplicaSpec, args []string, emptiesCommand bool) {
	for i := range role.Template.Spec.Containers {
		if c := &role.Template.Spec.Containers[i]; c.Name == kubeflowv1.MPIContainer && len(args) > 0 {
			if c.Args = args; emptiesCommand {
				c.Command = nil
			}
		}
	}
}

// readWorkerCommand reads what version 0 of MPI tasks keeps beside the message.
func (t *Task) readWorkerCommand(config map[string]string) {
	if command := config[workerCommandKey]; t.Custom.TaskType == MPITask && t.Custom.TaskTypeVersion == 0 && command != "" {
		t.workerCommand = strings.Split(command, " ")
	}
}
