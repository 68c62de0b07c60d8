// Package kubeflow reads and edits jobs of every kubeflow.org kind. What is particular to one is a [Kind], a row of the table in
// package kinds: data, and two functions for what depends on the job.
package kubeflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Kind is the adapter of one kubeflow.org kind.
type Kind struct {
	// Layout is how its jobs are written: roles, container, port, default restart policy.
	Layout kubeflowv1.Layout
	// Empty is a job of the kind without contents.
	Empty func() kubeflowv1.Job
	// Label is the kind's name in metrics.
	Label string
	// Scope is what a failure restarts.
	Scope job.Scope
	// Leaders are the roles that can lead. The first of them that has replicas does: its replica 0 is the one that others look to,
	// and the job has succeeded when all replicas of that role have. With Rendezvous the leader is also found by its bare name.
	Leaders    []kubeflowv1.ReplicaType
	Rendezvous bool
	// PerReplica are the variables of the environment that are different for each replica, so that a template must not set them.
	PerReplica []string
	// Complete changes what is different in a job because of the kind's own fields: success, scope, elasticity. It may be nil.
	Complete func(*manifest.Manifest, kubeflowv1.Job)
	// Equip adds to a replica's pod what pods of this kind alone have. It may be nil.
	Equip func(m *manifest.Manifest, obj kubeflowv1.Job, pod *corev1.Pod, r job.Replica)
	// Environment is the environment of a replica in an attempt.
	Environment func(m *manifest.Manifest, obj kubeflowv1.Job, r job.Replica, attempt int32) manifest.Env
}

// Name is the API kind.
func (k Kind) Name() string { return k.Layout.Kind }

// GroupVersion is where the API has it.
func (Kind) GroupVersion() schema.GroupVersion { return kubeflowv1.GroupVersion }

// Framework is the value of the metrics' label.
func (k Kind) Framework() string { return k.Label }

// New is an empty API object of the kind.
func (k Kind) New() manifest.Object { return k.Empty() }

// Write puts a status into a job.
func (Kind) Write(obj manifest.Object, m *manifest.Manifest, s job.Status) {
	parts := obj.(kubeflowv1.Job).Parts()
	kept := parts.FlatPolicy.Or(parts.Status.Policy)
	*parts.Status = manifest.WriteStatus(s, m.Selector)
	if inQueue(obj) {
		parts.Status.Policy = kept
	}
}

// Suspend edits a job so that it is suspended, or resumed.
func (Kind) Suspend(obj manifest.Object, suspend bool) {
	obj.(kubeflowv1.Job).Parts().RunPolicy.Suspend = &suspend
}

// worker is the role that is resized where none is named. Every kind has it.
const worker = "Worker"

// Resize edits a job so that a role has n replicas, the Workers where none is named. It returns the role as the job writes it.
func (Kind) Resize(obj manifest.Object, role string, n int32) (name string, ok bool) {
	for written, spec := range *obj.(kubeflowv1.Job).Parts().ReplicaSpecs {
		if strings.EqualFold(string(written), cmp.Or(role, worker)) && spec != nil {
			spec.Replicas = &n
			return string(written), true
		}
	}
	return "", false
}

// Conditions are the conditions of a job.
func (Kind) Conditions(obj manifest.Object) []kubeflowv1.JobCondition {
	return obj.(kubeflowv1.Job).Parts().Status.Conditions
}

// Read takes the job out of an API object, which it leaves as it is.
func (k Kind) Read(obj manifest.Object) *manifest.Manifest {
	written := *obj.(kubeflowv1.Job).Parts().ReplicaSpecs
	defaulted := obj.DeepCopyObject().(kubeflowv1.Job)
	if flat, status := defaulted.Parts().FlatPolicy, defaulted.Parts().Status; status.Policy != nil && inQueue(obj) {
		flat.LifecyclePolicy = *flat.Or(status.Policy)
	}
	defaulted.SetDefaults()
	m := k.common(defaulted)
	m.Leader, m.Rendezvous = job.Replica{Role: k.leader(m)}, k.Rendezvous
	m.Job.Scope = k.Scope
	m.Job.Success = job.Success{Role: m.Leader.Role, Rule: job.SuccessAll}
	if k.Complete != nil {
		k.Complete(m, defaulted)
	}
	if m.Job.Elastic != nil { // its Workers end together, or are waited for
		for i := range m.Job.Roles {
			m.Job.Roles[i].MayFinish = false
		}
	}
	m.Job.Misstated = m.Job.Elastic != nil && misstated(written, m)
	m.Job.Unqueued = unqueued(k.Layout, written, m.Job.Queue)
	m.Job.Unsized = m.Autoscaled() && unsized(written, m.Job.Elastic.Role)
	if k.Equip != nil {
		m.Equip = func(pod *corev1.Pod, r job.Replica) { k.Equip(m, defaulted, pod, r) }
	}
	m.Job.Children = m.Children()
	m.Env = func(r job.Replica, attempt int32) manifest.Env { return k.Environment(m, defaulted, r, attempt) }
	return m
}

// common is what is read alike from jobs of all kinds, whose defaults are set: identity, policy, roles, status.
func (k Kind) common(obj kubeflowv1.Job) *manifest.Manifest {
	parts, policy := obj.Parts(), obj.Parts().RunPolicy
	m := &manifest.Manifest{
		Owner: k.GroupVersion().WithKind(k.Name()), Templates: map[string]*corev1.PodTemplateSpec{}, Agent: manifest.DefaultAgent,
	}
	m.Job = job.Job{
		Kind: k.Name(), Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), Generation: obj.GetGeneration(),
		Deleting: obj.GetDeletionTimestamp() != nil, Owned: metav1.GetControllerOfNoCopy(obj) != nil,
		Manager: kubeflowv1.ManagedByTrainingOperator, Queue: obj.GetLabels()[manifest.LabelQueue],
		Policy: job.RunPolicy{
			CleanPodPolicy:          job.CleanPodPolicy(*policy.CleanPodPolicy),
			TTLSecondsAfterFinished: policy.TTLSecondsAfterFinished,
			ActiveDeadlineSeconds:   policy.ActiveDeadlineSeconds,
			BackoffLimit:            policy.BackoffLimit,
			Suspend:                 policy.Suspend != nil && *policy.Suspend,
			ManagedBy:               policy.ManagedBy,
		},
	}
	m.Placement = placement(policy.SchedulingPolicy)
	m.SetFromAnnotations(obj.GetAnnotations())
	for _, name := range k.Layout.Roles {
		if spec := (*parts.ReplicaSpecs)[name]; spec != nil {
			m.Job.Roles = append(m.Job.Roles, job.Role{
				Name: string(name), Replicas: *spec.Replicas, Container: k.Layout.Container, MayFinish: k.Scope == job.ScopeJob,
				RestartPolicy: cmp.Or(manifest.RestartPolicy(obj.GetAnnotations()), job.RestartPolicy(spec.RestartPolicy)),
			})
			m.Templates[string(name)] = &spec.Template
		}
	}
	m.Status = manifest.ReadStatus(parts.Status, m.Job.Roles)
	return m
}

// placement is what the scheduling policy of a job says, nil where it has none.
func placement(policy *kubeflowv1.SchedulingPolicy) *manifest.Placement {
	if policy == nil {
		return nil
	}
	return &manifest.Placement{
		MinAvailable: policy.MinAvailable, Queue: policy.Queue, PriorityClass: policy.PriorityClass,
		MinResources: policy.MinResources, ScheduleTimeoutSeconds: policy.ScheduleTimeoutSeconds,
	}
}

// leader is the role that leads the job. A job in which no such role has replicas, which the API server refuses, has the last one.
func (k Kind) leader(m *manifest.Manifest) string {
	for _, role := range k.Leaders {
		if m.Has(string(role)) {
			return string(role)
		}
	}
	return string(k.Leaders[len(k.Leaders)-1])
}

// unsized tells whether the job names no number of replicas for a role, so that an autoscaler would find none.
func unsized(written map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, role string) bool {
	spec := written[kubeflowv1.ReplicaType(role)]
	return spec != nil && spec.Replicas == nil
}

// inQueue reports whether Kueue admits the job. Its client may drop the policies that it does not know from the spec, so they are kept
// in the status. Anybody else who removes one means it.
func inQueue(obj manifest.Object) bool { return obj.GetLabels()[manifest.LabelQueue] != "" }

// misstated tells whether an elastic job names another number of replicas than it runs: fewer than its minimum, for example. Only a role
// in its own letter case has the scale subresource, by which the number is written.
func misstated(written map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, m *manifest.Manifest) bool {
	spec := written[kubeflowv1.ReplicaType(m.Job.Elastic.Role)]
	return spec != nil && (spec.Replicas == nil && m.ElasticSize() != 1 || spec.Replicas != nil && *spec.Replicas != m.ElasticSize())
}

// unqueued says that Kueue cannot admit a job of a queue, because it knows the kind's roles in their own letter case only.
func unqueued(layout kubeflowv1.Layout, written map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, queue string) string {
	if queue == "" {
		return ""
	}
	for _, role := range layout.Roles {
		for _, name := range slices.Sorted(maps.Keys(written)) {
			if name != role && strings.EqualFold(string(name), string(role)) {
				return fmt.Sprintf("Kueue does not know the role %s: write it as %s", name, role)
			}
		}
	}
	return ""
}

// Port is the number of the port at which replicas of a role are reached.
func Port(m *manifest.Manifest, layout kubeflowv1.Layout, role string) int32 {
	return manifest.Port(m.Templates[role], layout.Container, layout.PortName, layout.Port)
}

// LeaderPort is the number of the port at which all replicas meet: the one that a template sets by a variable, else that of the
// leader. The job's defaults are set.
func LeaderPort(m *manifest.Manifest, obj kubeflowv1.Job) int32 {
	if _, port := obj.Parts().PortSet(); port != 0 {
		return port
	}
	return Port(m, obj.Parts().Layout, m.Leader.Role)
}
