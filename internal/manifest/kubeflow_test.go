package manifest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func TestTheRestartPolicyOfARole(t *testing.T) {
	for _, row := range []struct {
		sentence, annotation string
		want                 job.RestartPolicy
	}{
		{"is what it says", "", job.RestartNever},
		{"is what the job's annotation says for all", "OnFailure", job.RestartOnFailure},
		{"stays, if that says nothing we know", "Sometimes", job.RestartNever},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			meta := &metav1.ObjectMeta{Annotations: map[string]string{kubeflowv1.AnnotationRestartPolicy: row.annotation}}
			if got := restartPolicy(meta, &kubeflowv1.ReplicaSpec{RestartPolicy: kubeflowv1.RestartPolicyNever}); got != row.want {
				t.Errorf("it is %s, want %s", got, row.want)
			}
		})
	}
}
