package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// An elastic job has an autoscaler while it runs: made as its metrics say, changed when they are, gone while it is suspended
// and when it has ended. On its way the job loses a worker and is cleaned up and removed, all by the rights of an
// installation.
func TestAnAutoscalerLivesWithItsJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	fail, done := filepath.Join(dir, "fail"), filepath.Join(dir, "done")
	j := w.submit(pytorch(roles{"Worker": running(2, fmt.Sprintf(`until test -f %s; do rmdir %s 2>/dev/null && exit 137; sleep 0.1; done`, done, fail))},
		func(pj *kubeflowv1.PyTorchJob) {
			pj.Spec.PyTorchReplicaSpecs["Worker"].RestartPolicy = kubeflowv1.RestartPolicyExitCode
			pj.Spec.RunPolicy.CleanPodPolicy = new(kubeflowv1.CleanPodPolicyAll)
			pj.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(1)), MaxReplicas: new(int32(3)), Metrics: queueOf("10")}
		}))
	j.becomes(kubeflowv1.JobRunning)
	j.scales(3, "10")

	j.edit(func(obj client.Object) {
		policy := obj.(*kubeflowv1.PyTorchJob).Spec.ElasticPolicy
		policy.MaxReplicas, policy.Metrics = new(int32(4)), queueOf("20")
	})
	j.scales(4, "20")
	j.until("is told its new bounds", func(s kubeflowv1.JobStatus) bool { // as another attempt, at nobody's cost
		return s.Attempt == 1 && s.Restarts == 0 && newest(s).Type == kubeflowv1.JobRunning
	})

	j.edit(func(obj client.Object) { policyOf(obj).Suspend = new(true) })
	j.until("is suspended", func(s kubeflowv1.JobStatus) bool { return newest(s).Type == kubeflowv1.JobSuspended })
	j.scalesNoMore()
	j.edit(func(obj client.Object) { policyOf(obj).Suspend = new(false) })
	j.becomes(kubeflowv1.JobRunning)
	j.scales(4, "20")

	if err := os.Mkdir(fail, 0o700); err != nil {
		t.Fatal(err)
	}
	j.until("runs again", func(s kubeflowv1.JobStatus) bool { return s.Retries == 1 && s.Ready == "2/2" })
	open(t, done)
	j.becomes(kubeflowv1.JobSucceeded)
	j.scalesNoMore()
	w.Eventually("it is cleaned up", func() error {
		if pods, services := j.pods(), j.services(); len(pods)+len(services) > 0 {
			return fmt.Errorf("left are %v and %v", pods, services)
		}
		return nil
	})
	j.edit(func(obj client.Object) { policyOf(obj).TTLSecondsAfterFinished = new(int32(0)) })
	j.isGone()
	w.checkRights()
}

// queueOf is a metric that nobody measures, so that the autoscaler leaves the job alone.
func queueOf(length string) []autoscalingv2.MetricSpec {
	return []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse(length))},
	}}}
}

// scales waits until the job's autoscaler is as the job wants it.
func (j *training) scales(most int32, queue string) {
	j.Helper()
	j.Eventually(fmt.Sprintf("%s scales up to %d by a queue of %s", j.name, most, queue), func() error {
		hpa, err := j.Client.AutoscalingV2().HorizontalPodAutoscalers(j.Namespace).Get(j.t.Context(), j.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		spec := hpa.Spec
		if spec.ScaleTargetRef.Kind != "PyTorchJob" || *spec.MinReplicas != 1 || spec.MaxReplicas != most || spec.Metrics[0].External.Target.Value.String() != queue {
			return fmt.Errorf("its autoscaler is %+v", spec)
		}
		return nil
	})
}

// scalesNoMore waits until the job has no autoscaler.
func (j *training) scalesNoMore() {
	j.Helper()
	j.Eventually(j.name+" scales no more", func() error {
		hpa, err := j.Client.AutoscalingV2().HorizontalPodAutoscalers(j.Namespace).Get(j.t.Context(), j.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("there is %+v, %w", hpa.Spec, err)
	})
}
