package controller_test

import (
	"os"
	"path/filepath"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
)

// elasticTrainJob is a TrainJob of one to three nodes that train as the elastic example does, until they are stopped.
func (w *world) elasticTrainJob(perStep string, metrics ...autoscalingv2.MetricSpec) *elasticRun {
	w.Helper()
	script, err := filepath.Abs("../../examples/elastic/train.py")
	if err != nil {
		w.Fatal(err)
	}
	folder := w.t.TempDir()
	r := blueprint("elastic", runtimeStep("node", "trainer", "node", folder, ""))
	r.Spec.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{Torch: &trainer.TorchMLPolicySource{
		ElasticPolicy: &trainer.TorchElasticPolicy{MinNodes: new(int32(1)), MaxNodes: new(int32(3)), Metrics: metrics},
	}}}
	pod := &r.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(10))
	pod.Containers[0].Command = []string{"torchrun", script}
	pod.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	for _, v := range [][2]string{
		{"CHECKPOINTS", folder}, {"STEPS", "1000000"}, {"SECONDS_PER_STEP", perStep}, {"PET_MONITOR_INTERVAL", "1"}, {"PET_REDIRECTS", "9:1"}, {"PET_TEE", "9:1"},
	} {
		pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: v[0], Value: v[1]})
	}
	w.create(r)
	e := &elasticRun{training: w.submit(trainjob("elastic"))}
	e.folder = filepath.Join(folder, string(e.trainJob().UID))
	return e
}

// Real torchrun in a TrainJob with one node, three and two, of which the first is lost in between.
func TestAnElasticTrainJobIsScaledAndLosesANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.elasticTrainJob("0.2")
	e.trainsWith(1)
	w.Kubectl("scale", "trainjob", "elastic", "--replicas=3")
	e.trainsWith(3)
	e.kill("node-0") // which holds the rendezvous: the attempt ends with it
	e.until("is in another attempt", func(s kubeflowv1.JobStatus) bool { return s.Attempt == 1 && s.Retries == 1 })
	e.trainsWith(3)
	w.Kubectl("scale", "trainjob", "elastic", "--replicas=2")
	e.trainsWith(2)
	if s := e.succeeds(); s.Retries != 1 || s.Attempt != 1 {
		t.Errorf("the status is\n%s", describe(s))
	}
	e.conditioned("Complete", "AllJobsCompleted")
	e.lostNoStep()
}

// The autoscaler that the runtime's metrics make changes the number of nodes of a job that never named one.
func TestAnElasticTrainJobFollowsItsAutoscaler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.elasticTrainJob("1", autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
	}})
	e.trains("anyone", func(int) bool { return true })
	e.put("busy")
	e.has("3 nodes", func(n int) bool { return n == 3 })
	e.trainsWith(3)
	if err := os.Remove(filepath.Join(e.folder, "busy")); err != nil {
		t.Fatal(err)
	}
	fewer := func(n int) bool { return n < 3 }
	e.has("fewer than 3 nodes", fewer)
	e.trains("fewer than 3 nodes", fewer)
	if s := e.succeeds(); s.Retries+s.Disruptions != 0 || s.Attempt != 0 {
		t.Errorf("the status is\n%s", describe(s))
	}
	e.lostNoStep()
}
