package manifest

import (
	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

// RestartScope is what the annotations of a job say that a failure restarts, empty where they say nothing that has a meaning.
func RestartScope(annotations map[string]string) job.Scope {
	switch scope := job.Scope(annotations[kubeflowv1.AnnotationRestartScope]); scope {
	case job.ScopeJob, job.ScopeReplica:
		return scope
	}
	return ""
}

// RestartPolicy is the restart policy that the annotations of a job give to all its roles, empty where they say nothing that has a
// meaning.
func RestartPolicy(annotations map[string]string) job.RestartPolicy {
	switch policy := job.RestartPolicy(annotations[kubeflowv1.AnnotationRestartPolicy]); policy {
	case job.RestartNever, job.RestartOnFailure, job.RestartAlways, job.RestartExitCode:
		return policy
	}
	return ""
}
