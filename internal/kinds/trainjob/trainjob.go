// Package trainjob answers what is particular to TrainJobs: they are made from a runtime. Its steps become the roles: first those that
// fetch data, then those that train. The job's own spec and other controllers' patches override the runtime's template. The framework
// that the runtime names sets the environment by which the nodes find each other. A job uses the copy of the runtime that it made when
// it was first seen.
package trainjob

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Kind is the adapter of TrainJobs.
type Kind struct{}

// Name is the API kind.
func (Kind) Name() string { return trainer.TrainJobKind }

// GroupVersion is where the API has it.
func (Kind) GroupVersion() schema.GroupVersion { return trainer.GroupVersion }

// Framework is the value of the metrics' label.
func (Kind) Framework() string { return "trainjob" }

// New is an empty TrainJob.
func (Kind) New() manifest.Object { return &trainer.TrainJob{} }

// Write puts a status into a TrainJob.
func (Kind) Write(obj manifest.Object, m *manifest.Manifest, s job.Status) {
	tj := obj.(*trainer.TrainJob)
	kept := policyOf(tj)
	writeStatus(&tj.Status, m, s)
	tj.Status.Policy = kept
}

// Suspend edits a TrainJob so that it is suspended, or resumed.
func (Kind) Suspend(obj manifest.Object, suspend bool) {
	obj.(*trainer.TrainJob).Spec.Suspend = &suspend
}

// Resize edits a TrainJob so that the step that trains has n nodes. The runtime alone says the sizes of other steps.
func (k Kind) Resize(obj manifest.Object, role string, n int32) (string, bool) {
	tj, trains := obj.(*trainer.TrainJob), k.Read(obj).Leader.Role
	if role != "" && !strings.EqualFold(role, trains) {
		return "", false
	}
	if tj.Spec.Trainer == nil {
		tj.Spec.Trainer = &trainer.Trainer{}
	}
	tj.Spec.Trainer.NumNodes = &n
	return trains, true
}

// Conditions are the states of a TrainJob, or how Trainer ended it.
func (Kind) Conditions(obj manifest.Object) []kubeflowv1.JobCondition {
	return states(&obj.(*trainer.TrainJob).Status)
}

// Read takes the job out of a TrainJob, which it leaves as it is.
func (Kind) Read(obj manifest.Object) *manifest.Manifest {
	tj := obj.(*trainer.TrainJob)
	m := &manifest.Manifest{
		Owner: trainer.GroupVersion.WithKind(trainer.TrainJobKind), Templates: map[string]*corev1.PodTemplateSpec{},
		Env: func(job.Replica, int32) manifest.Env { return manifest.Env{} },
	}
	m.Job = job.Job{
		Kind: trainer.TrainJobKind, Namespace: tj.Namespace, Name: tj.Name, UID: tj.UID, Generation: tj.Generation,
		Deleting: tj.DeletionTimestamp != nil, Owned: metav1.GetControllerOfNoCopy(tj) != nil,
		Manager: trainer.ManagedByTrainer, Queue: tj.Labels[manifest.LabelQueue],
		Policy: job.RunPolicy{
			CleanPodPolicy: job.CleanRunning, Suspend: tj.Spec.Suspend != nil && *tj.Spec.Suspend, ManagedBy: tj.Spec.ManagedBy,
		},
	}
	if policy := policyOf(tj); policy != nil {
		m.Job.Policy.TTLSecondsAfterFinished, m.Job.Policy.ActiveDeadlineSeconds = policy.TTLSecondsAfterFinished, policy.ActiveDeadlineSeconds
	}
	m.SetFromAnnotations(tj.Annotations)
	if tj.Status.Runtime == nil {
		m.Job.Missing = fmt.Sprintf("the %s does not exist", runtimeOf(tj))
	} else if err := build(m, tj); err != nil {
		m.Job.Invalid = err.Error()
	}
	m.Status = readStatus(&tj.Status, m.Job.Roles)
	return m
}

// build makes the job from its runtime. An error says why the two cannot run together.
func build(m *manifest.Manifest, tj *trainer.TrainJob) error {
	spec, err := copyOf(tj)
	if err != nil {
		return err
	}
	if err := checkSupported(spec, tj); err != nil {
		return err
	}
	if spec.Template, err = patched(spec.Template, tj); err != nil {
		return err
	}
	if err := overlay(&spec.Template, tj); err != nil {
		return err
	}
	setPolicy(&m.Job.Policy, spec)
	m.Placement = placement(spec.PodGroupPolicy)
	if err := setSteps(m, spec, tj); err != nil {
		return err
	}
	if err := frameworkOf(spec.MLPolicy).build(m, spec, tj); err != nil {
		return err
	}
	m.Job.Children = m.Children()
	return checkNames(m.Job)
}

// checkNames refuses a job with pods whose names are too long.
func checkNames(j job.Job) error {
	for _, role := range j.Roles {
		last := j.Size(role) - 1
		if j.Elastic != nil && j.Elastic.Role == role.Name {
			last = j.Elastic.Max - 1
		}
		if name := j.PodName(job.Replica{Role: role.Name, Index: last}); len(name) > 63 {
			return fmt.Errorf("the pod name %s has %d characters, and 63 are the most: use a shorter name for the job", name, len(name))
		}
	}
	return nil
}
