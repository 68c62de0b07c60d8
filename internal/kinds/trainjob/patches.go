package trainjob

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
)

// patched is the template with the job's runtimePatches merged over it, in their order.
func patched(template trainer.JobSetTemplateSpec, tj *trainer.TrainJob) (trainer.JobSetTemplateSpec, error) {
	for _, p := range tj.Spec.RuntimePatches {
		if p.TrainingRuntimeSpec == nil || p.TrainingRuntimeSpec.Template == nil {
			continue
		}
		patch := p.TrainingRuntimeSpec.Template
		if err := checkPatch(patch, &template, p.Manager, tj); err != nil {
			return template, err
		}
		merged, err := merge(template, patch)
		if err != nil {
			return template, fmt.Errorf("merging the patch of %s: %w", p.Manager, err)
		}
		template = merged
	}
	return template, nil
}

// checkPatch refuses a patch of steps or containers that the template does not have: what it would add could not run.
func checkPatch(patch *trainer.JobSetTemplatePatch, template *trainer.JobSetTemplateSpec, manager string, tj *trainer.TrainJob) error {
	if patch.Spec == nil {
		return nil
	}
	for _, p := range patch.Spec.ReplicatedJobs {
		step := stepNamed(template, p.Name)
		if step == nil {
			return invalid(tj, "has no step %s, which the patch of %s changes: it has %s", p.Name, manager, strings.Join(stepNames(template), ", "))
		}
		if p.Template == nil || p.Template.Spec == nil || p.Template.Spec.Template == nil || p.Template.Spec.Template.Spec == nil {
			continue
		}
		pod, spec := p.Template.Spec.Template.Spec, step.Template.Spec.Template.Spec
		for _, c := range slices.Concat(unknown(pod.Containers, spec.Containers), unknown(pod.InitContainers, spec.InitContainers)) {
			return invalid(tj, "has no container %s in step %s, which the patch of %s changes", c, p.Name, manager)
		}
	}
	return nil
}

// unknown are the patched containers that the template does not have.
func unknown(patches []trainer.ContainerPatch, containers []corev1.Container) []string {
	var names []string
	for _, p := range patches {
		if !slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == p.Name }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// merge is Kubernetes' strategic merge. It does not keep the order of merged lists, so merge restores the order of the steps.
func merge(template trainer.JobSetTemplateSpec, patch *trainer.JobSetTemplatePatch) (trainer.JobSetTemplateSpec, error) {
	var merged trainer.JobSetTemplateSpec
	original, err := json.Marshal(template)
	if err != nil {
		return merged, err
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return merged, err
	}
	result, err := strategicpatch.StrategicMergePatch(original, change, trainer.JobSetTemplateSpec{})
	if err != nil {
		return merged, err
	}
	if err := json.Unmarshal(result, &merged); err != nil {
		return merged, err
	}
	order := stepNames(&template)
	slices.SortFunc(merged.Spec.ReplicatedJobs, func(a, b jobsetv1alpha2.ReplicatedJob) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
	return merged, nil
}
