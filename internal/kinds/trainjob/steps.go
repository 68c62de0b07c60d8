package trainjob

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// setSteps makes a role of each step of the template, which must have one that trains.
func setSteps(m *manifest.Manifest, spec *trainer.TrainingRuntimeSpec, tj *trainer.TrainJob) error {
	set := &spec.Template.Spec
	training := stepFor(&spec.Template, trainer.StepTrainer)
	for i := range set.ReplicatedJobs {
		step := &set.ReplicatedJobs[i]
		role := job.Role{Name: step.Name, Replicas: pods(step), RestartPolicy: job.RestartOnFailure, Container: containerName(step)}
		if step.Name == training.Name {
			role.Replicas, role.MayFinish = nodes(spec, tj), true
		}
		var err error
		if role.After, err = after(&spec.Template, i, tj); err != nil {
			return err
		}
		m.Job.Roles = append(m.Job.Roles, role)
		m.Templates[step.Name] = podTemplate(&spec.Template, step, tj)
	}
	m.Leader = job.Replica{Role: training.Name}
	m.IndexKey = batchv1.JobCompletionIndexAnnotation
	m.Job.Trains, m.Job.Scope = training.Name, job.ScopeJob
	m.Job.Success = job.Success{Rule: job.SuccessAll}
	if policy := set.SuccessPolicy; policy != nil && len(policy.TargetReplicatedJobs) == 1 {
		target := policy.TargetReplicatedJobs[0]
		if stepNamed(&spec.Template, target) == nil {
			return invalid(tj, "has no step %s, with which its successPolicy ends the job: it has %s", target, strings.Join(stepNames(&spec.Template), ", "))
		}
		m.Job.Success.Role = target
	}
	return nil
}

// after is what a step waits for: steps before it, as JobSet demands, so that none ever waits for itself.
func after(template *trainer.JobSetTemplateSpec, i int, tj *trainer.TrainJob) ([]job.Dependency, error) {
	set, step := &template.Spec, &template.Spec.ReplicatedJobs[i]
	var dependencies []job.Dependency
	for _, d := range step.DependsOn {
		if stepNamed(template, d.Name) == nil {
			return nil, invalid(tj, "has a step %s that waits for %s, which it does not have", step.Name, d.Name)
		}
		if !slices.Contains(stepNames(template)[:i], d.Name) {
			return nil, invalid(tj, "has a step %s that waits for %s, which is no step before it: let it wait for earlier ones only", step.Name, d.Name)
		}
		dependencies = append(dependencies, job.Dependency{Role: d.Name, Until: job.Milestone(d.Status)})
	}
	if i > 0 && set.StartupPolicy != nil && set.StartupPolicy.StartupPolicyOrder == jobsetv1alpha2.InOrder {
		dependencies = append(dependencies, job.Dependency{Role: set.ReplicatedJobs[i-1].Name, Until: job.MilestoneReady})
	}
	return dependencies, nil
}

// nodes is how many pods train: what the job says, else the runtime.
func nodes(spec *trainer.TrainingRuntimeSpec, tj *trainer.TrainJob) int32 {
	one := int32(1)
	var own, runtimes *int32
	if tj.Spec.Trainer != nil {
		own = tj.Spec.Trainer.NumNodes
	}
	if spec.MLPolicy != nil {
		runtimes = spec.MLPolicy.NumNodes
	}
	return *first(own, runtimes, &one)
}

// pods is how many pods the Job of a step would have.
func pods(step *jobsetv1alpha2.ReplicatedJob) int32 {
	one := int32(1)
	return *first(step.Template.Spec.Completions, step.Template.Spec.Parallelism, &one)
}

// podTemplate is a step's pod template, with the labels and annotations of everything above it and those by which clients of
// Trainer find a JobSet's pods.
func podTemplate(set *trainer.JobSetTemplateSpec, step *jobsetv1alpha2.ReplicatedJob, tj *trainer.TrainJob) *corev1.PodTemplateSpec {
	template := step.Template.Spec.Template.DeepCopy()
	labels, annotations := map[string]string{}, map[string]string{}
	for _, above := range []struct{ labels, annotations map[string]string }{
		{set.Labels, set.Annotations}, {step.Template.Labels, step.Template.Annotations}, {template.Labels, template.Annotations},
	} {
		maps.Copy(labels, above.labels)
		maps.Copy(annotations, above.annotations)
	}
	labels[jobsetv1alpha2.JobSetNameKey] = tj.Name
	labels[jobsetv1alpha2.ReplicatedJobNameKey] = step.Name
	labels[jobsetv1alpha2.JobIndexKey] = "0"
	template.Labels, template.Annotations = labels, annotations
	return template
}

// containerName is the container by which a step's pods are judged.
func containerName(step *jobsetv1alpha2.ReplicatedJob) string {
	switch ancestor := step.Template.Labels[trainer.LabelAncestorStep]; ancestor {
	case trainer.StepDataset, trainer.StepModel:
		return ancestor
	default:
		return trainer.ContainerNode
	}
}

// stepFor is the step that takes a part of a TrainJob, nil if none does.
func stepFor(template *trainer.JobSetTemplateSpec, ancestor string) *jobsetv1alpha2.ReplicatedJob {
	return find(template, func(step jobsetv1alpha2.ReplicatedJob) bool {
		return step.Template.Labels[trainer.LabelAncestorStep] == ancestor
	})
}

func stepNamed(template *trainer.JobSetTemplateSpec, name string) *jobsetv1alpha2.ReplicatedJob {
	return find(template, func(step jobsetv1alpha2.ReplicatedJob) bool { return step.Name == name })
}

func find(template *trainer.JobSetTemplateSpec, is func(jobsetv1alpha2.ReplicatedJob) bool) *jobsetv1alpha2.ReplicatedJob {
	if i := slices.IndexFunc(template.Spec.ReplicatedJobs, is); i >= 0 {
		return &template.Spec.ReplicatedJobs[i]
	}
	return nil
}

func stepNames(template *trainer.JobSetTemplateSpec) []string {
	var names []string
	for _, step := range template.Spec.ReplicatedJobs {
		names = append(names, step.Name)
	}
	return names
}
