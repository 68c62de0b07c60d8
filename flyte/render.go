package flyte

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins/kubeflow"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Dialect is the version of Flyte, where they differ.
type Dialect string

// The two Flytes.
const (
	// Flyte1 is Flyte 1.16.
	Flyte1 Dialect = "v1"
	// Flyte2 is Flyte 2; an empty Dialect means it too.
	Flyte2 Dialect = "v2"
)

// Execution is what Flyte knows only when it runs a task: names, labels, and the environment of the run.
type Execution struct {
	// Dialect is the Flyte that runs the task.
	Dialect Dialect
	// Name and Namespace are the job's.
	Name, Namespace string
	// Labels and Annotations go to the job and to its pods.
	Labels, Annotations map[string]string
	// ServiceAccount is for pods that name none.
	ServiceAccount string
	// Env is added to every container that has no such variable.
	Env []corev1.EnvVar
}

// Manifest is a job: a *PyTorchJob, a *TFJob or an *MPIJob of api/kubeflow/v1.
type Manifest interface {
	runtime.Object
	metav1.Object
}

// Render returns the job that Flyte's backend would create, without the owner reference and the finalizer.
func (t Task) Render(e Execution) (Manifest, error) {
	var (
		job Manifest
		err error
	)
	switch m := t.Custom.current().(type) {
	case *kubeflow.DistributedPyTorchTrainingTask:
		if t.Custom.TaskType == PythonTask {
			return nil, fmt.Errorf("render %s: a task of one node becomes a pod, not a job", e.Name)
		}
		job, err = t.pytorchJob(m, e)
	case *kubeflow.DistributedTensorflowTrainingTask:
		job, err = t.tfJob(m, e)
	case *kubeflow.DistributedMPITrainingTask, *plugins.DistributedMPITrainingTask:
		job, err = t.mpiJob(e)
	default:
		return nil, fmt.Errorf("render %s: task type %s has no job in this package", e.Name, t.Custom.TaskType)
	}
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", e.Name, err)
	}
	return job, nil
}

func (t Task) pytorchJob(m *kubeflow.DistributedPyTorchTrainingTask, e Execution) (*kubeflowv1.PyTorchJob, error) {
	master, worker := specOf(m.GetMasterReplicas()), specOf(m.GetWorkerReplicas())
	master.replicas = 1
	if worker.replicas < 1 && e.Dialect != Flyte1 {
		return nil, fmt.Errorf("workerReplicas.replicas: %d: Flyte 2 needs at least one worker", worker.replicas)
	}
	job := &kubeflowv1.PyTorchJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflowv1.GroupVersion.String(), Kind: kubeflowv1.PyTorchJobKind},
		ObjectMeta: t.jobMeta(e),
	}
	job.Spec.RunPolicy.LifecyclePolicy = lifecycleOf(m.GetRunPolicy())
	job.Spec.ElasticPolicy = elasticPolicyOf(m.GetElasticConfig())

	roles := map[kubeflowv1.ReplicaType]replicaSpec{}
	if job.Spec.ElasticPolicy == nil {
		roles[kubeflowv1.PyTorchMaster] = master
	}
	if worker.replicas > 0 {
		roles[kubeflowv1.PyTorchWorker] = worker
	}
	if len(roles) == 0 {
		return nil, fmt.Errorf("workerReplicas.replicas: an elastic job needs workers")
	}
	var err error
	if job.Spec.PyTorchReplicaSpecs, err = t.replicaSpecs(roles, kubeflowv1.PyTorchContainer, e); err != nil {
		return nil, err
	}
	if w := job.Spec.PyTorchReplicaSpecs[kubeflowv1.PyTorchWorker]; w != nil && e.Dialect == Flyte1 && t.Custom.TaskTypeVersion == 1 {
		addEnv(&w.Template.Spec.Containers[0], podNameEnv(envWorkerName))
	}
	return job, nil
}

func (t Task) tfJob(m *kubeflow.DistributedTensorflowTrainingTask, e Execution) (*kubeflowv1.TFJob, error) {
	roles := map[kubeflowv1.ReplicaType]replicaSpec{
		kubeflowv1.TFChief:     specOf(m.GetChiefReplicas()),
		kubeflowv1.TFPS:        specOf(m.GetPsReplicas()),
		kubeflowv1.TFWorker:    specOf(m.GetWorkerReplicas()),
		kubeflowv1.TFEvaluator: specOf(m.GetEvaluatorReplicas()),
	}
	maps.DeleteFunc(roles, func(_ kubeflowv1.ReplicaType, s replicaSpec) bool { return s.replicas < 1 })
	if _, ok := roles[kubeflowv1.TFWorker]; !ok {
		return nil, fmt.Errorf("workerReplicas.replicas: Flyte needs at least one worker")
	}
	job := &kubeflowv1.TFJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflowv1.GroupVersion.String(), Kind: kubeflowv1.TFJobKind},
		ObjectMeta: t.jobMeta(e),
	}
	job.Spec.RunPolicy.LifecyclePolicy = lifecycleOf(m.GetRunPolicy())
	var err error
	job.Spec.TFReplicaSpecs, err = t.replicaSpecs(roles, kubeflowv1.TFContainer, e)
	return job, err
}

// jobMeta is the metadata of the job. Flyte 1 uses the task's labels and annotations, Flyte 2 those of the pod, but only in its
// plugin for PyTorch.
func (t Task) jobMeta(e Execution) metav1.ObjectMeta {
	var labels, annotations map[string]string
	switch {
	case e.Dialect == Flyte1:
		labels, annotations = t.Labels, t.Annotations
	case t.Custom.TaskType == PyTorchTask:
		labels, annotations = t.Pod.Template.Labels, t.Pod.Template.Annotations
	}
	return metav1.ObjectMeta{
		Name:        e.Name,
		Namespace:   e.Namespace,
		Labels:      union(labels, e.Labels),
		Annotations: union(e.Dialect.annotations(), annotations, e.Annotations),
	}
}

// lifecycleOf: without a message nothing is set; with one the clean pod policy always is, and the others unless they are 0.
func lifecycleOf(m *kubeflow.RunPolicy) kubeflowv1.LifecyclePolicy {
	if m == nil {
		return kubeflowv1.LifecyclePolicy{}
	}
	policy := kubeflowv1.LifecyclePolicy{
		CleanPodPolicy: new(map[kubeflow.CleanPodPolicy]kubeflowv1.CleanPodPolicy{
			kubeflow.CleanPodPolicy_CLEANPOD_POLICY_NONE:    kubeflowv1.CleanPodPolicyNone,
			kubeflow.CleanPodPolicy_CLEANPOD_POLICY_RUNNING: kubeflowv1.CleanPodPolicyRunning,
			kubeflow.CleanPodPolicy_CLEANPOD_POLICY_ALL:     kubeflowv1.CleanPodPolicyAll,
		}[m.GetCleanPodPolicy()]),
		TTLSecondsAfterFinished: unlessZero(m.GetTtlSecondsAfterFinished()),
		BackoffLimit:            unlessZero(m.GetBackoffLimit()),
	}
	if seconds := m.GetActiveDeadlineSeconds(); seconds != 0 {
		policy.ActiveDeadlineSeconds = new(int64(seconds))
	}
	return policy
}

// elasticPolicyOf sets all five fields, also to 0 and "".
func elasticPolicyOf(m *kubeflow.ElasticConfig) *kubeflowv1.ElasticPolicy {
	if m == nil {
		return nil
	}
	return &kubeflowv1.ElasticPolicy{
		MinReplicas:  new(m.GetMinReplicas()),
		MaxReplicas:  new(m.GetMaxReplicas()),
		RDZVBackend:  new(kubeflowv1.RDZVBackend(m.GetRdzvBackend())),
		NProcPerNode: new(m.GetNprocPerNode()),
		MaxRestarts:  new(m.GetMaxRestarts()),
	}
}

func (t Task) replicaSpecs(
	roles map[kubeflowv1.ReplicaType]replicaSpec, container string, e Execution,
) (map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, error) {
	specs := make(map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, len(roles))
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		role := roles[name]
		template, err := t.Pod.render(role, container, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		specs[name] = &kubeflowv1.ReplicaSpec{
			Replicas:      new(role.replicas),
			RestartPolicy: kubeflowv1.RestartPolicy(role.restart),
			Template:      template,
		}
	}
	return specs, nil
}

// union merges maps; the later one wins. It is nil if there is nothing.
func union(parts ...map[string]string) map[string]string {
	var all map[string]string
	for _, part := range parts {
		for key, value := range part {
			if all == nil {
				all = map[string]string{}
			}
			all[key] = value
		}
	}
	return all
}
