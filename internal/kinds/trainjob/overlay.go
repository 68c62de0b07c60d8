package trainjob

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
)

// overlay sets in the template what the job itself says.
func overlay(template *trainer.JobSetTemplateSpec, tj *trainer.TrainJob) error {
	if i := tj.Spec.Initializer; i != nil {
		if i.Dataset != nil {
			if err := overlaySource(template, trainer.StepDataset, i.Dataset.Source, tj); err != nil {
				return err
			}
		}
		if i.Model != nil {
			if err := overlaySource(template, trainer.StepModel, i.Model.Source, tj); err != nil {
				return err
			}
		}
	}
	node, err := containerOf(template, trainer.StepTrainer, trainer.ContainerNode, tj)
	if err != nil || tj.Spec.Trainer == nil {
		return err
	}
	overlayTrainer(node, tj.Spec.Trainer)
	return nil
}

// overlaySource sets where an initializer fetches from.
func overlaySource(template *trainer.JobSetTemplateSpec, step string, source trainer.Source, tj *trainer.TrainJob) error {
	c, err := containerOf(template, step, step, tj)
	if err != nil {
		return err
	}
	if uri := source.StorageURI; uri != nil && *uri != "" {
		setEnv(c, corev1.EnvVar{Name: trainer.EnvStorageURI, Value: *uri})
	}
	setEnv(c, source.Env...)
	if source.SecretRef != nil {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *source.SecretRef}})
	}
	return nil
}

func overlayTrainer(node *corev1.Container, t *trainer.Trainer) {
	if t.Image != nil && *t.Image != "" {
		node.Image = *t.Image
	}
	if len(t.Command) > 0 {
		node.Command = t.Command
	}
	if len(t.Args) > 0 {
		node.Args = t.Args
	}
	setEnv(node, t.Env...)
	if r := t.ResourcesPerNode; r != nil {
		node.Resources.Limits = mergeResources(node.Resources.Limits, r.Limits)
		node.Resources.Requests = mergeResources(node.Resources.Requests, r.Requests)
		if len(r.Claims) > 0 {
			node.Resources.Claims = r.Claims
		}
	}
}

func mergeResources(base, over corev1.ResourceList) corev1.ResourceList {
	if base == nil {
		return over
	}
	maps.Copy(base, over)
	return base
}

// setEnv adds variables, in place of those of the same name.
func setEnv(c *corev1.Container, env ...corev1.EnvVar) {
	for _, e := range env {
		replaced := false
		for i := range c.Env {
			if c.Env[i].Name == e.Name {
				c.Env[i], replaced = e, true
			}
		}
		if !replaced {
			c.Env = append(c.Env, e)
		}
	}
}

// containerOf is the container of a step whose fields a TrainJob can set.
func containerOf(template *trainer.JobSetTemplateSpec, step, container string, tj *trainer.TrainJob) (*corev1.Container, error) {
	s := stepFor(template, step)
	if s == nil {
		return nil, invalid(tj, "has no step with the label %s: %s: use another runtime", trainer.LabelAncestorStep, step)
	}
	containers := s.Template.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name == container {
			return &containers[i], nil
		}
	}
	return nil, invalid(tj, "has no container %s in its step %s: use another runtime", container, s.Name)
}
