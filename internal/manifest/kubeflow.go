package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

// Kubeflow is what all kubeflow.org jobs have in common, read from one whose defaults are set: identity, policy, the
// roles in the given order, the status.
func Kubeflow(kind string, meta *metav1.ObjectMeta, policy kubeflowv1.RunPolicy, status *kubeflowv1.JobStatus,
	specs map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, order []kubeflowv1.ReplicaType, container string,
) *Manifest {
	m := &Manifest{Owner: kubeflowv1.GroupVersion.WithKind(kind), Templates: map[string]*corev1.PodTemplateSpec{}}
	m.Job = job.Job{
		Kind: kind, Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, Generation: meta.Generation,
		Deleting: meta.DeletionTimestamp != nil, Owned: metav1.GetControllerOfNoCopy(meta) != nil, Manager: kubeflowv1.ManagedByTrainingOperator,
		ScopeOverride: RestartScope(meta.Annotations),
		Policy: job.RunPolicy{
			CleanPodPolicy:          job.CleanPodPolicy(*policy.CleanPodPolicy),
			TTLSecondsAfterFinished: policy.TTLSecondsAfterFinished,
			ActiveDeadlineSeconds:   policy.ActiveDeadlineSeconds,
			BackoffLimit:            policy.BackoffLimit,
			Suspend:                 policy.Suspend != nil && *policy.Suspend,
			ManagedBy:               policy.ManagedBy,
		},
	}
	for _, name := range order {
		spec := specs[name]
		if spec == nil {
			continue
		}
		m.Job.Roles = append(m.Job.Roles, job.Role{
			Name: string(name), Replicas: *spec.Replicas, RestartPolicy: restartPolicy(meta, spec), Container: container,
		})
		m.Templates[string(name)] = &spec.Template
	}
	m.Status = ReadStatus(status, m.Job.Roles)
	return m
}

// RestartScope is what the annotations of a job say that a failure restarts, empty where they say nothing that has a meaning.
func RestartScope(annotations map[string]string) job.Scope {
	switch scope := job.Scope(annotations[kubeflowv1.AnnotationRestartScope]); scope {
	case job.ScopeJob, job.ScopeReplica:
		return scope
	}
	return ""
}

// Resize gives a role n replicas, in whatever letter case the specs name it, and returns that name.
func Resize(specs map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec, role string, n int32) (name string, ok bool) {
	for key, spec := range specs {
		if strings.EqualFold(string(key), role) && spec != nil {
			spec.Replicas = &n
			return string(key), true
		}
	}
	return "", false
}

// restartPolicy is that of a role, unless an annotation of the job names one for all.
func restartPolicy(meta *metav1.ObjectMeta, spec *kubeflowv1.ReplicaSpec) job.RestartPolicy {
	policy := job.RestartPolicy(meta.Annotations[kubeflowv1.AnnotationRestartPolicy])
	switch policy {
	case job.RestartNever, job.RestartOnFailure, job.RestartAlways, job.RestartExitCode:
		return policy
	}
	return job.RestartPolicy(spec.RestartPolicy)
}

// Has tells whether the job has a replica of the role.
func (m *Manifest) Has(role kubeflowv1.ReplicaType) bool {
	r := m.role(string(role))
	return m.Job.Size(r) > 0
}

// Total is the number of replicas of all roles.
func (m *Manifest) Total() int32 {
	var n int32
	for _, role := range m.Job.Roles {
		n += m.Job.Size(role)
	}
	return n
}
