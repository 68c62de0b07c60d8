package manifest

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Autoscaler is the HorizontalPodAutoscaler of the job, which must want one.
func (m *Manifest) Autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Job.Name, Namespace: m.Job.Namespace, Labels: m.jobLabels(), OwnerReferences: []metav1.OwnerReference{m.owner()},
		},
		Spec: *m.Job.Scaler.DeepCopy(),
	}
}

// ElasticSize is the number of replicas the elastic role of the job should have now.
func (m *Manifest) ElasticSize() int32 { return m.Job.Size(m.role(m.Job.Elastic.Role)) }
