package lint

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/apis/autoscaling/validation"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/manifest"
)

// checkAutoscaler warns of an autoscaler that the API server would reject: the job runs without it, and does not scale.
func (c *checker) checkAutoscaler(m *manifest.Manifest) error {
	var refusals field.ErrorList
	for _, child := range m.Children() {
		if scaler, is := child.Object.(*autoscalingv2.HorizontalPodAutoscaler); is {
			found, err := autoscalerRefusals(scaler)
			if err != nil {
				return err
			}
			refusals = append(refusals, found...)
		}
	}
	for _, e := range refusals {
		below, ofMetrics := strings.CutPrefix(e.Field, "spec.metrics")
		if path := "spec.elasticPolicy.metrics" + below; ofMetrics && c.object.GetKind() == kubeflowv1.PyTorchJobKind {
			c.warn(path, "the job is not scaled by it, as the API server would reject it: %s", messageOf(e))
		} else if ofMetrics {
			c.warn("spec.runtimeRef", "the job is not scaled by its runtime's metrics, as the API server would reject metrics%s: %s", below, messageOf(e))
		}
	}
	return nil
}

func autoscalerRefusals(scaler *autoscalingv2.HorizontalPodAutoscaler) (field.ErrorList, error) {
	defaults.SetObjectDefaults_HorizontalPodAutoscaler(scaler)
	internal := &autoscaling.HorizontalPodAutoscaler{}
	if err := defaults.Convert_v2_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler(scaler, internal, nil); err != nil {
		return nil, fmt.Errorf("reading autoscaler %s: %w", scaler.Name, err)
	}
	return validation.ValidateHorizontalPodAutoscaler(internal, validation.HorizontalPodAutoscalerSpecValidationOptions{
		MinReplicasLowerBound:          1,
		ObjectMetricsValidationOptions: validation.CrossVersionObjectReferenceValidationOptions{AllowEmptyAPIGroup: true},
	}), nil
}
