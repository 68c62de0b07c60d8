package proof

import (
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// roles are the replica specs of a job.
type roles = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec

func replicas(n int32, policy kubeflowv1.RestartPolicy) *kubeflowv1.ReplicaSpec {
	return &kubeflowv1.ReplicaSpec{Replicas: &n, RestartPolicy: policy, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "train", Image: "train"}},
	}}}
}

// gang is a PyTorchJob whose replicas all restart together.
func gang(workers int32, policy kubeflowv1.RestartPolicy, changes ...func(kubeflowv1.Job)) kubeflowv1.Job {
	job := &kubeflowv1.PyTorchJob{}
	job.Spec.PyTorchReplicaSpecs = roles{"Master": replicas(1, policy), "Worker": replicas(workers, policy)}
	return with(job, changes)
}

// elastic is a PyTorchJob of one to three Workers.
func elastic(workers int32, policy kubeflowv1.RestartPolicy, changes ...func(kubeflowv1.Job)) kubeflowv1.Job {
	job := &kubeflowv1.PyTorchJob{}
	job.Spec.PyTorchReplicaSpecs = roles{"Worker": replicas(workers, policy)}
	job.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(1)), MaxReplicas: new(int32(3))}
	return with(job, changes)
}

// tensorflow is a TFJob, whose replicas restart alone.
func tensorflow(workers int32, policy kubeflowv1.RestartPolicy, changes ...func(kubeflowv1.Job)) kubeflowv1.Job {
	job := &kubeflowv1.TFJob{}
	job.Spec.TFReplicaSpecs = roles{"Chief": replicas(1, policy), "Worker": replicas(workers, policy)}
	return with(job, changes)
}

func with(job kubeflowv1.Job, changes []func(kubeflowv1.Job)) kubeflowv1.Job {
	for _, change := range changes {
		change(job)
	}
	return job
}

func deadline(seconds int64) func(kubeflowv1.Job) {
	return func(job kubeflowv1.Job) { job.Parts().RunPolicy.ActiveDeadlineSeconds = &seconds }
}

func ttl(seconds int32) func(kubeflowv1.Job) {
	return func(job kubeflowv1.Job) { job.Parts().RunPolicy.TTLSecondsAfterFinished = &seconds }
}

func backoffLimit(n int32) func(kubeflowv1.Job) {
	return func(job kubeflowv1.Job) { job.Parts().RunPolicy.BackoffLimit = &n }
}

func clean(policy kubeflowv1.CleanPodPolicy) func(kubeflowv1.Job) {
	return func(job kubeflowv1.Job) { job.Parts().RunPolicy.CleanPodPolicy = &policy }
}

func suspend(yes bool) func(kubeflowv1.Job) {
	return func(job kubeflowv1.Job) { job.Parts().RunPolicy.Suspend = &yes }
}

func workers(n int32) func(kubeflowv1.Job) {
	return func(job kubeflowv1.Job) { (*job.Parts().ReplicaSpecs)["Worker"].Replicas = &n }
}

// autoscaled lets an elastic job have an autoscaler.
func autoscaled(job kubeflowv1.Job) {
	target := int32(50)
	job.(*kubeflowv1.PyTorchJob).Spec.ElasticPolicy.Metrics = []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target},
		},
	}}
}

// request is what wakes the history's job.
func (h *history) request() reconcile.Request { return reconcile.Request{NamespacedName: h.job} }

// size is how many replicas of a role the job should have.
func (h *history) size(_ kubeflowv1.ReplicaType, spec *kubeflowv1.ReplicaSpec) int32 {
	n := int32(1)
	if spec.Replicas != nil {
		n = *spec.Replicas
	}
	if pytorch, ok := h.oracle.stored.(*kubeflowv1.PyTorchJob); ok && pytorch.Spec.ElasticPolicy != nil {
		n = min(max(n, *pytorch.Spec.ElasticPolicy.MinReplicas), *pytorch.Spec.ElasticPolicy.MaxReplicas)
	}
	return n
}

// namesake leaves pods of a job of the same name behind that was deleted a moment ago.
func (h *history) namesake(name string) {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: h.job.Name + "-" + name, Namespace: h.job.Namespace,
		Labels: map[string]string{
			"training.kubeflow.org/operator-name": "pytorchjob-controller", "training.kubeflow.org/job-name": h.job.Name,
			"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0", "trainyard.dev/attempt": "0",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Name: h.job.Name, UID: "an-earlier-job", Controller: &yes,
		}},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "train", Image: "train"}}
	h.create(pod)
	h.start(h.pods()[pod.Name], h.nodes.name(0))
}

// leave lets the pods of the earlier job end.
func (h *history) leave() {
	for _, pod := range slices.Collect(maps.Values(h.pods())) {
		if !h.oracle.ours(pod) {
			h.note("%s of the earlier job has ended", pod.Name)
			h.oracle.truthOf(pod).ended = true
			h.delete(pod, atOnce)
		}
	}
}
