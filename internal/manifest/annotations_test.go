package manifest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
			if policy, scope := RestartPolicy(row.written), restartScope(row.written); policy != row.policy || scope != row.scope {
				t.Errorf("restart policy %q and scope %q, want %q and %q", policy, scope, row.policy, row.scope)
			}
		})
	}
}

func TestPoliciesInAnnotations(t *testing.T) {
	leaving := policies(30*time.Second, nil, job.AvoidPrefer)
	leaving.LeavesNodes = true
	for _, row := range []struct {
		sentence string
		written  map[string]string
		want     job.Job
	}{
		{"without annotations", nil, policies(30*time.Second, nil, job.AvoidPrefer)},
		{"each as written", map[string]string{
			kubeflowv1.AnnotationFinishWithin: "5m", kubeflowv1.AnnotationMaxDisruptions: "3", kubeflowv1.AnnotationAvoidNodes: "Off",
		}, policies(5*time.Minute, new(int32(3)), job.AvoidOff)},
		{"a job that leaves nodes", map[string]string{kubeflowv1.AnnotationOnNodeMaintenance: "Move"}, leaving},
		{"a job that stays", map[string]string{kubeflowv1.AnnotationOnNodeMaintenance: "Stay"}, policies(30*time.Second, nil, job.AvoidPrefer)},
		{"what has no meaning has no effect", map[string]string{
			kubeflowv1.AnnotationFinishWithin: "-1s", kubeflowv1.AnnotationMaxDisruptions: "many", kubeflowv1.AnnotationAvoidNodes: "Maybe",
		}, policies(30*time.Second, nil, job.AvoidPrefer)},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var got Manifest
			got.SetFromAnnotations(row.written)
			if diff := cmp.Diff(row.want, got.Job); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func policies(finishWithin time.Duration, maxDisruptions *int32, avoid job.AvoidNodes) job.Job {
	return job.Job{AvoidNodes: avoid, Policy: job.RunPolicy{FinishWithin: finishWithin, MaxDisruptions: maxDisruptions}}
}
