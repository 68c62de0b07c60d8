package flyte

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amounts are cpu, memory, gpu, ephemeral storage; an empty one is not asked for.
type amounts [4]string

func (a amounts) list() corev1.ResourceList {
	list := corev1.ResourceList{}
	for i, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpuResource, corev1.ResourceEphemeralStorage} {
		if a[i] != "" {
			list[name] = resource.MustParse(a[i])
		}
	}
	return list
}

func amountsOf(requests, limits amounts) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: requests.list(), Limits: limits.list()}
}

func TestSetDefaults(t *testing.T) {
	for _, c := range []struct {
		name            string
		asked, complete corev1.ResourceRequirements
	}{
		{"nothing asked for: the platform's defaults, and no others",
			corev1.ResourceRequirements{}, amountsOf(amounts{"1", "1Gi"}, amounts{"1", "1Gi"})},
		{"a request is its own limit", amountsOf(amounts{"2", "2Gi"}, amounts{}), amountsOf(amounts{"2", "2Gi"}, amounts{"2", "2Gi"})},
		{"a limit is its own request", amountsOf(amounts{}, amounts{"2", "2Gi", "1", "9Gi"}), amountsOf(amounts{"2", "2Gi", "1", "9Gi"}, amounts{"2", "2Gi", "1", "9Gi"})},
		{"a request above its limit is lowered", amountsOf(amounts{"8", "1Gi"}, amounts{"4", "2Gi"}), amountsOf(amounts{"4", "1Gi"}, amounts{"4", "2Gi"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.complete, setDefaults(c.asked)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.complete, setDefaults(setDefaults(c.asked))); diff != "" {
				t.Errorf("defaulted twice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlay(t *testing.T) {
	task := amountsOf(amounts{"4", "8Gi", "1"}, amounts{})
	for _, c := range []struct {
		name       string
		role, want corev1.ResourceRequirements
	}{
		{"a role that asks for memory alone gets the default CPU, and keeps the task's GPU",
			amountsOf(amounts{"", "2Gi"}, amounts{}), amountsOf(amounts{"1", "2Gi", "1"}, amounts{"1", "2Gi", "1"})},
		{"a role that asks for more GPUs", amountsOf(amounts{"2", "2Gi", "8"}, amounts{}), amountsOf(amounts{"2", "2Gi", "8"}, amounts{"2", "2Gi", "8"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, overlay(task, c.role)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(amountsOf(amounts{"4", "8Gi", "1"}, amounts{}), task); diff != "" {
		t.Errorf("the task's own were changed (-want +got):\n%s", diff)
	}
}
