package flyte

import (
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// Task is what Flyte creates a job from: the plugin's message, and the pod that the replicas run.
type Task struct {
	// Custom is the configuration of the job.
	Custom Custom
	// Pod is what each replica runs.
	Pod Pod
	// Labels and Annotations are the task's own, for the job object. Only Flyte 1 puts them there.
	Labels, Annotations map[string]string
	// Warnings say what was lost from the TaskTemplate.
	Warnings []Warning
	// workerCommand is that of an MPI task of version 0.
	workerCommand []string
}

// primaryContainerKey is the key of TaskTemplate.config under which Flyte finds the training container of a pod.
const primaryContainerKey = "primary_container_name"

// ReadTask reads a TaskTemplate, its custom as strictly as ParseCustom. Command lines keep Flyte's placeholders ({{.input}}), and
// what only an installation of Flyte knows (its named pod templates, the labels of GPU nodes) is reported as a warning, not guessed.
func ReadTask(t *core.TaskTemplate) (Task, error) {
	custom, err := ParseCustom(TaskType(t.GetType()), t.GetTaskTypeVersion(), t.GetCustom())
	if err != nil {
		return Task{}, err
	}
	task := Task{
		Custom:      custom,
		Labels:      t.GetMetadata().GetMetadata().GetLabels(),
		Annotations: t.GetMetadata().GetMetadata().GetAnnotations(),
	}
	task.readWorkerCommand(t.GetConfig())
	switch {
	case t.GetContainer() != nil:
		err = task.readContainer(t.GetContainer())
	case t.GetK8SPod() != nil:
		err = task.readPod(t.GetK8SPod(), t.GetConfig()[primaryContainerKey])
	}
	if err != nil {
		return Task{}, fmt.Errorf("read %s task: %w", t.GetType(), err)
	}
	if memory := t.GetExtendedResources().GetSharedMemory(); memory != nil {
		if err := task.Pod.mountMemory(memory.GetMountName(), memory.GetMountPath(), memory.GetSizeLimit()); err != nil {
			return Task{}, fmt.Errorf("read %s task: extendedResources.sharedMemory: %w", t.GetType(), err)
		}
	}
	if name := t.GetMetadata().GetPodTemplateName(); name != "" {
		task.Warnings = append(task.Warnings, warn(NotCarried, "metadata.podTemplateName",
			"Flyte lays the pod over its cluster's PodTemplate %q, which is not here", name))
	}
	if device := t.GetExtendedResources().GetGpuAccelerator().GetDevice(); device != "" {
		task.Warnings = append(task.Warnings, warn(NotCarried, "extendedResources.gpuAccelerator",
			"the node labels of %q are part of Flyte's configuration", device))
	}
	return task, nil
}

func (t *Task) readContainer(c *core.Container) error {
	resources, err := requirements(c.GetResources())
	if err != nil {
		return fmt.Errorf("container.resources: %w", err)
	}
	container := corev1.Container{
		Name:                     "main",
		Image:                    c.GetImage(),
		Command:                  c.GetCommand(),
		Args:                     c.GetArgs(),
		Resources:                resources,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	for _, pair := range c.GetEnv() {
		container.Env = append(container.Env, corev1.EnvVar{Name: pair.GetKey(), Value: pair.GetValue()})
	}
	t.Pod.Template.Spec.Containers = []corev1.Container{container}
	return nil
}

func (t *Task) readPod(pod *core.K8SPod, primary string) error {
	if pod.GetPodSpec() == nil {
		return fmt.Errorf("k8sPod: there is no podSpec")
	}
	data, err := pod.GetPodSpec().MarshalJSON()
	if err != nil {
		return fmt.Errorf("k8sPod.podSpec: %w", err)
	}
	unknown, err := kjson.UnmarshalStrict(data, &t.Pod.Template.Spec)
	if err != nil {
		return fmt.Errorf("k8sPod.podSpec: %w", err)
	}
	for _, field := range unknown {
		t.Warnings = append(t.Warnings, warn(UnknownField, "k8sPod.podSpec", "%v", field))
	}
	if primary == "" {
		return fmt.Errorf("config: %s is missing: it names the training container", primaryContainerKey)
	}
	t.Pod.Primary = primary
	t.Pod.Template.Labels = pod.GetMetadata().GetLabels()
	t.Pod.Template.Annotations = pod.GetMetadata().GetAnnotations()
	return nil
}
