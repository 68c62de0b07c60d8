package trainjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Bases are the kinds of runtimes.
func (Kind) Bases() []manifest.Object {
	return []manifest.Object{&trainer.TrainingRuntime{}, &trainer.ClusterTrainingRuntime{}}
}

// Wants is the runtime of a TrainJob that has no copy of it yet; nil where it has one, or where another controller runs the job.
func (k Kind) Wants(obj manifest.Object) manifest.Object {
	tj := obj.(*trainer.TrainJob)
	if tj.Status.Runtime != nil || tj.DeletionTimestamp != nil || finished(tj) || k.Read(tj).Job.ManagedElsewhere() {
		return nil
	}
	if refKind(tj) == trainer.TrainingRuntimeKind {
		return &trainer.TrainingRuntime{ObjectMeta: metav1.ObjectMeta{Name: tj.Spec.RuntimeRef.Name, Namespace: tj.Namespace}}
	}
	return &trainer.ClusterTrainingRuntime{ObjectMeta: metav1.ObjectMeta{Name: tj.Spec.RuntimeRef.Name}}
}

// Take copies a runtime into the status of a TrainJob. The copy is stored with the job's first status, before any child is created,
// and the job is run by it from then on.
func (Kind) Take(obj, base manifest.Object) error {
	tj := obj.(*trainer.TrainJob)
	var spec *trainer.TrainingRuntimeSpec
	switch base := base.(type) {
	case *trainer.TrainingRuntime:
		spec = &base.Spec
	case *trainer.ClusterTrainingRuntime:
		spec = &base.Spec
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("copying the %s: %w", runtimeOf(tj), err)
	}
	tj.Status.Runtime = &trainer.RuntimeSnapshot{
		Kind: refKind(tj), Name: base.GetName(), UID: base.GetUID(), Generation: base.GetGeneration(), Spec: runtime.RawExtension{Raw: raw},
	}
	return nil
}

// copyOf is the runtime's spec as the job has copied it.
func copyOf(tj *trainer.TrainJob) (*trainer.TrainingRuntimeSpec, error) {
	spec := &trainer.TrainingRuntimeSpec{}
	if err := json.Unmarshal(tj.Status.Runtime.Spec.Raw, spec); err != nil {
		return nil, fmt.Errorf("the copy of the %s cannot be read: %w", runtimeOf(tj), err)
	}
	return spec, nil
}

// checkSupported refuses a runtime that asks for what is not supported. A job that ran without it would not be the job that the user
// wants.
func checkSupported(spec *trainer.TrainingRuntimeSpec, tj *trainer.TrainJob) error {
	ml, set := spec.MLPolicy, spec.Template.Spec
	if ml == nil {
		ml = &trainer.MLPolicy{}
	}
	var what string
	switch {
	case ml.Flux != nil:
		what = "mlPolicy.flux"
	case ml.Torch != nil && tj.Spec.Trainer != nil && slices.Equal(tj.Spec.Trainer.Command, []string{"tune", "run"}):
		return fmt.Errorf("the command is tune run alone, to which Kubeflow Trainer adds a recipe of torchtune and its configuration, which is not supported: write the whole command")
	case len(set.VolumeClaimPolicies) > 0:
		what = "volumeClaimPolicies (create the claim, and name it among the volumes)"
	case set.FailurePolicy != nil && len(set.FailurePolicy.Rules) > 0:
		what = "failurePolicy.rules"
	case set.SuccessPolicy != nil && len(set.SuccessPolicy.TargetReplicatedJobs) > 1:
		what = "a successPolicy of several steps"
	case set.SuccessPolicy != nil && set.SuccessPolicy.Operator == jobsetv1alpha2.OperatorAny && len(set.SuccessPolicy.TargetReplicatedJobs) == 0:
		what = "a successPolicy of any step (name one in its targetReplicatedJobs)"
	}
	for _, step := range set.ReplicatedJobs {
		if what == "" && step.Template.Spec.PodFailurePolicy != nil {
			what = "the podFailurePolicy of step " + step.Name
		}
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("the %s asks for %s, which is not supported yet: use another runtime", runtimeOf(tj), what)
}

// runtimeOf is the kind and name of a job's runtime, for messages.
func runtimeOf(tj *trainer.TrainJob) string { return refKind(tj) + " " + tj.Spec.RuntimeRef.Name }

// refKind is the kind of a job's runtime, also where no API server has set the default.
func refKind(tj *trainer.TrainJob) string {
	if kind := tj.Spec.RuntimeRef.Kind; kind != nil && *kind != "" {
		return *kind
	}
	return trainer.ClusterTrainingRuntimeKind
}

// invalid is the error that a job and its runtime cannot run together.
func invalid(tj *trainer.TrainJob, format string, args ...any) error {
	return errors.New("the " + runtimeOf(tj) + " " + fmt.Sprintf(format, args...))
}
