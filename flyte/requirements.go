package flyte

import (
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const gpuResource corev1.ResourceName = "nvidia.com/gpu"

// resourceNames are the resources Flyte gives to a pod; it drops the others.
var resourceNames = map[core.Resources_ResourceName]corev1.ResourceName{
	core.Resources_CPU:               corev1.ResourceCPU,
	core.Resources_MEMORY:            corev1.ResourceMemory,
	core.Resources_GPU:               gpuResource,
	core.Resources_EPHEMERAL_STORAGE: corev1.ResourceEphemeralStorage,
}

// platformDefaults are what Flyte by default gives a training container that requests no CPU or memory.
var platformDefaults = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("1"),
	corev1.ResourceMemory: resource.MustParse("1Gi"),
}

func requirements(r *core.Resources) (corev1.ResourceRequirements, error) {
	requests, err := resourceList(r.GetRequests())
	if err != nil {
		return corev1.ResourceRequirements{}, fmt.Errorf("requests: %w", err)
	}
	limits, err := resourceList(r.GetLimits())
	if err != nil {
		return corev1.ResourceRequirements{}, fmt.Errorf("limits: %w", err)
	}
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}, nil
}

// resourceList leaves zeros out, as Flyte does.
func resourceList(entries []*core.Resources_ResourceEntry) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, e := range entries {
		quantity, err := resource.ParseQuantity(e.GetValue())
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", e.GetName(), e.GetValue(), err)
		}
		if name, known := resourceNames[e.GetName()]; known && !quantity.IsZero() {
			list[name] = quantity
		}
	}
	return list, nil
}

// setDefaults gives CPU and memory their defaults, copies a limit to a missing request and the other way round, and lowers a
// request to its limit.
func setDefaults(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	complete := *r.DeepCopy()
	complete.Requests, complete.Limits = corev1.ResourceList{}, corev1.ResourceList{}
	for name, quantity := range r.Requests {
		complete.Requests[name] = quantity
	}
	for name, quantity := range r.Limits {
		complete.Limits[name] = quantity
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, gpuResource} {
		request, limit := complete.Requests[name], complete.Limits[name]
		if request.IsZero() {
			request = limit
		}
		if request.IsZero() {
			request = platformDefaults[name]
		}
		if request.IsZero() {
			continue
		}
		if limit.IsZero() {
			limit = request
		}
		if request.Cmp(limit) > 0 {
			request = limit
		}
		complete.Requests[name], complete.Limits[name] = request, limit
	}
	return complete
}

// resourcesFor are the resources of a container, with those of its role over them if the role has any.
func resourcesFor(container corev1.ResourceRequirements, role *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if role == nil {
		return setDefaults(container)
	}
	return overlay(container, *role)
}

// inRange lowers requests to their limits. Flyte 1 sets CPU and memory also where they are 0.
func inRange(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	kept := *r.DeepCopy()
	if kept.Requests == nil {
		kept.Requests = corev1.ResourceList{}
	}
	if kept.Limits == nil {
		kept.Limits = corev1.ResourceList{}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, gpuResource} {
		request, requested := kept.Requests[name]
		limit, limited := kept.Limits[name]
		if _, always := platformDefaults[name]; !always && !requested && !limited {
			continue
		}
		if !request.IsZero() && !limit.IsZero() && request.Cmp(limit) > 0 {
			request = limit
		}
		kept.Requests[name], kept.Limits[name] = request, limit
	}
	return kept
}

// overlay puts a role's resources over those of the task. They get their defaults first: a role that asks for memory alone gets the
// default CPU, not the task's.
func overlay(task, role corev1.ResourceRequirements) corev1.ResourceRequirements {
	merged, role := setDefaults(task), setDefaults(role)
	for name, quantity := range role.Requests {
		merged.Requests[name] = quantity
	}
	for name, quantity := range role.Limits {
		merged.Limits[name] = quantity
	}
	return setDefaults(merged)
}
