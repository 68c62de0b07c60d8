package trainjob

import (
	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// defaultRetries is how often a job is retried where no limit is set, as in Kubernetes' Jobs.
const defaultRetries = 6

// policyOf are the policies of a TrainJob that clients of Trainer may not know: as its spec has them or, where Kueue admits it, had them
// before Kueue's client dropped them.
func policyOf(tj *trainer.TrainJob) *kubeflowv1.LifecyclePolicy {
	written := kubeflowv1.LifecyclePolicy{
		TTLSecondsAfterFinished: tj.Spec.TTLSecondsAfterFinished, ActiveDeadlineSeconds: tj.Spec.ActiveDeadlineSeconds,
	}
	if tj.Labels[manifest.LabelQueue] == "" {
		return &written // whoever removes one means it
	}
	return written.Or(tj.Status.Policy)
}

// setPolicy fills what the job's policy leaves out from the runtime's.
func setPolicy(p *job.RunPolicy, spec *trainer.TrainingRuntimeSpec) {
	policy := spec.RunPolicy
	if policy == nil {
		policy = &trainer.RuntimeRunPolicy{}
	}
	if policy.CleanPodPolicy != nil {
		p.CleanPodPolicy = job.CleanPodPolicy(*policy.CleanPodPolicy)
	}
	p.TTLSecondsAfterFinished = first(p.TTLSecondsAfterFinished, policy.TTLSecondsAfterFinished)
	p.ActiveDeadlineSeconds = first(p.ActiveDeadlineSeconds, policy.ActiveDeadlineSeconds)
	p.BackoffLimit = first(maxRestarts(spec.MLPolicy), policy.BackoffLimit, failureLimit(spec), stepLimit(spec), new(int32(defaultRetries)))
}

// maxRestarts is the limit that torch's elastic policy sets.
func maxRestarts(policy *trainer.MLPolicy) *int32 {
	if e := elasticPolicy(policy); e != nil {
		return e.MaxRestarts
	}
	return nil
}

// failureLimit is how often a JobSet of the template would be restarted.
func failureLimit(spec *trainer.TrainingRuntimeSpec) *int32 {
	if policy := spec.Template.Spec.FailurePolicy; policy != nil {
		return &policy.MaxRestarts
	}
	return nil
}

// stepLimit is how often the Job that trains would be retried.
func stepLimit(spec *trainer.TrainingRuntimeSpec) *int32 {
	if step := stepFor(&spec.Template, trainer.StepTrainer); step != nil {
		return step.Template.Spec.BackoffLimit
	}
	return nil
}

func first[T any](candidates ...*T) *T {
	for _, candidate := range candidates {
		if candidate != nil {
			return candidate
		}
	}
	return nil
}

// placement is what a runtime's policy for pod groups says, nil where it has none.
func placement(policy *trainer.PodGroupPolicy) *manifest.Placement {
	switch {
	case policy == nil:
		return nil
	case policy.Volcano != nil:
		p := &manifest.Placement{Scheduler: manifest.GangVolcano}
		if t := policy.Volcano.NetworkTopology; t != nil {
			p.Topology = &manifest.Topology{Mode: t.Mode, HighestTierAllowed: t.HighestTierAllowed}
		}
		return p
	case policy.Coscheduling != nil:
		return &manifest.Placement{Scheduler: manifest.GangCoscheduling, ScheduleTimeoutSeconds: policy.Coscheduling.ScheduleTimeoutSeconds}
	default:
		return &manifest.Placement{}
	}
}
