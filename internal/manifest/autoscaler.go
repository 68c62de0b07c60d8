package manifest

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// scaleUpWindow is for how many seconds the metrics must have called for more replicas before they are added. Every change
// of their number restarts the processes of all, and that by itself keeps processors busy for a while.
const scaleUpWindow = 60

// autoscaler is the HorizontalPodAutoscaler of the job. It follows the job's bounds and metrics; its behavior is only a
// start value, which users may edit.
func (m *Manifest) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: m.childMeta(m.Job.Name, m.jobLabels()),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: m.Owner.GroupVersion().String(), Kind: m.Owner.Kind, Name: m.Job.Name,
			},
			MinReplicas: new(m.Job.Elastic.Min), MaxReplicas: m.Job.Elastic.Max, Metrics: m.Metrics,
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(scaleUpWindow))},
			},
		},
	}
}

func changeAutoscaler(have, want Object) {
	is, should := &have.(*autoscalingv2.HorizontalPodAutoscaler).Spec, want.(*autoscalingv2.HorizontalPodAutoscaler).Spec
	is.MinReplicas, is.MaxReplicas, is.Metrics = should.MinReplicas, should.MaxReplicas, should.Metrics
}

// Autoscaled tells whether the job wants an autoscaler.
func (m *Manifest) Autoscaled() bool { return len(m.Metrics) > 0 }

// ElasticSize is the number of replicas the elastic role of the job should have now.
func (m *Manifest) ElasticSize() int32 { return m.Job.Size(m.role(m.Job.Elastic.Role)) }
