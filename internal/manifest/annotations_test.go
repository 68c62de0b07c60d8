package manifest

import (
	"testing"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func TestWhatAnnotationsSay(t *testing.T) {
	for _, row := range []struct {
		sentence string
		written  map[string]string
		policy   job.RestartPolicy
		scope    job.Scope
	}{
		{"without annotations nothing is overridden", nil, "", ""},
		{"a known restart policy is for all roles", map[string]string{kubeflowv1.AnnotationRestartPolicy: "OnFailure"}, job.RestartOnFailure, ""},
		{"an unknown restart policy has no effect", map[string]string{kubeflowv1.AnnotationRestartPolicy: "Sometimes"}, "", ""},
		{"a known scope is for all failures", map[string]string{kubeflowv1.AnnotationRestartScope: "Replica"}, "", job.ScopeReplica},
		{"an unknown scope has no effect", map[string]string{kubeflowv1.AnnotationRestartScope: "Node"}, "", ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if policy, scope := RestartPolicy(row.written), RestartScope(row.written); policy != row.policy || scope != row.scope {
				t.Errorf("restart policy %q and scope %q, want %q and %q", policy, scope, row.policy, row.scope)
			}
		})
	}
}
