package manifest

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is for how many seconds more replicas must have been called for before they are added. Every change of their
// number starts the processes of all anew, and that by itself keeps processors busy for a while.
const patience = 60

// Autoscaler is the HorizontalPodAutoscaler of the job, which must want one. Its behavior is only a beginning: what somebody
// makes of it later is kept.
func (m *Manifest) Autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	spec := m.Job.Scaler.DeepCopy()
	spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(patience))},
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Job.Name, Namespace: m.Job.Namespace, Labels: m.jobLabels(), OwnerReferences: []metav1.OwnerReference{m.owner()},
		},
		Spec: *spec,
	}
}

// ElasticSize is the number of replicas the elastic role of the job should have now.
func (m *Manifest) ElasticSize() int32 { return m.Job.Size(m.role(m.Job.Elastic.Role)) }
