package manifest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resources "k8s.io/component-helpers/resource"

	"github.com/trainyard/trainyard/internal/job"
)

// kubernetesGangs are placed by kube-scheduler itself, from Kubernetes 1.37 on with the feature gate GenericWorkload.
var kubernetesGangs = GangScheduler{
	Name: GangKubernetes,
	Group: ChildKind{
		ChildKind: job.PodGroups, GroupVersion: schedulingv1beta1.SchemeGroupVersion, Optional: true,
		New: func() Object { return &schedulingv1beta1.PodGroup{} },
		members: func(obj Object) int32 {
			if gang := obj.(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang; gang != nil {
				return gang.MinCount
			}
			return 0
		},
		setMembers: func(obj Object, n int32) {
			obj.(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: n}
		},
		says: func(obj Object) string {
			c := meta.FindStatusCondition(obj.(*schedulingv1beta1.PodGroup).Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
			if c == nil || c.Status == metav1.ConditionTrue {
				return ""
			}
			return c.Message
		},
	},
	create: func(m *Manifest) Object {
		// A gang that loses a member stops, so preemption takes all of it or nothing. An elastic one goes on with fewer.
		mode := &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		if m.Job.Elastic != nil {
			mode = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
		}
		return &schedulingv1beta1.PodGroup{
			ObjectMeta: m.childMeta("", m.jobLabels()),
			Spec:       schedulingv1beta1.PodGroupSpec{DisruptionMode: mode, PriorityClassName: m.gangClass()},
		}
	},
	join: func(_ *Manifest, pod *corev1.Pod, _ job.Replica, group string) {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	},
}

var volcanoGroup = untypedGroup(job.VolcanoPodGroups, "v1beta1")

// volcanoGangs are placed by Volcano.
var volcanoGangs = GangScheduler{
	Name: GangVolcano, scheduler: "volcano",
	Group: volcanoGroup,
	create: func(m *Manifest) Object {
		spec := map[string]any{}
		setIf(spec, "queue", m.Placement.Queue)
		setIf(spec, "priorityClassName", m.gangClass())
		setResources(spec, m.minResources())
		if t := m.Placement.Topology; t != nil {
			topology := map[string]any{}
			setIf(topology, "mode", t.Mode)
			if t.HighestTierAllowed != nil {
				topology["highestTierAllowed"] = int64(*t.HighestTierAllowed)
			}
			spec["networkTopology"] = topology
		}
		return m.untyped(volcanoGroup, spec)
	},
	join: func(_ *Manifest, pod *corev1.Pod, r job.Replica, group string) {
		annotate(pod, job.AnnotationVolcanoGroup, group)
		annotate(pod, "volcano.sh/task-spec", strings.ToLower(r.Role))
	},
}

// coscheduling are gangs that the coscheduling plugin of scheduler-plugins places, in a scheduler of that name.
func coscheduling(name string) GangScheduler {
	group := untypedGroup(job.CoschedulingPodGroups, "v1alpha1")
	return GangScheduler{
		Name: name, scheduler: name, Group: group,
		create: func(m *Manifest) Object {
			spec := map[string]any{}
			setResources(spec, m.minResources())
			if timeout := m.Placement.ScheduleTimeoutSeconds; timeout != nil {
				spec["scheduleTimeoutSeconds"] = int64(*timeout)
			}
			return m.untyped(group, spec)
		},
		join: func(_ *Manifest, pod *corev1.Pod, _ job.Replica, group string) {
			pod.Labels[job.LabelCoschedulingGroup] = group
		},
	}
}

// untypedGroup is a kind of pod groups whose Go types are not linked in. Both name their number of members alike.
func untypedGroup(kind job.ChildKind, version string) ChildKind {
	gv := schema.GroupVersion{Group: kind.Group, Version: version}
	return ChildKind{
		ChildKind: kind, GroupVersion: gv, Optional: true,
		New: func() Object {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(gv.WithKind(kind.Kind))
			return obj
		},
		members: func(obj Object) int32 {
			n, _, _ := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "minMember")
			return int32(n)
		},
		setMembers: func(obj Object, n int32) {
			_ = unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, int64(n), "spec", "minMember")
		},
		says: unschedulable,
	}
}

// unschedulable is the message of the condition by which Volcano says that it cannot place a pod group. Coscheduling has none: it says so of
// the pods.
func unschedulable(obj Object) string {
	conditions, _, _ := unstructured.NestedSlice(obj.(*unstructured.Unstructured).Object, "status", "conditions")
	for _, c := range slices.Backward(conditions) {
		if c, ok := c.(map[string]any); ok && c["type"] == "Unschedulable" && c["status"] == "True" {
			message, _ := c["message"].(string)
			return message
		}
	}
	return ""
}

// untyped is a pod group of the job.
func (m *Manifest) untyped(kind ChildKind, spec map[string]any) Object {
	obj, metadata := kind.New().(*unstructured.Unstructured), m.childMeta("", m.jobLabels())
	obj.Object["spec"] = spec
	obj.SetNamespace(metadata.Namespace)
	obj.SetLabels(metadata.Labels)
	obj.SetOwnerReferences(metadata.OwnerReferences)
	return obj
}

// minResources is what must be free before the gang is placed: what the job says, or what the replicas request that must be placed
// together.
func (m *Manifest) minResources() corev1.ResourceList {
	if m.Placement.MinResources != nil {
		return *m.Placement.MinResources
	}
	sum, left := corev1.ResourceList{}, m.Job.Together()
	for _, role := range m.Job.Roles {
		if !m.Job.InGang(role) {
			continue
		}
		n := min(left, m.Job.Size(role))
		left -= n
		pod := &corev1.Pod{Spec: *m.Templates[role.Name].Spec.DeepCopy()}
		for i := range pod.Spec.Containers {
			requestLimits(&pod.Spec.Containers[i].Resources)
		}
		for name, quantity := range resources.PodRequests(pod, resources.PodResourcesOptions{}) {
			quantity.Mul(int64(n))
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

// requestLimits lets a container request what it is limited to where it says nothing else, as the API server does.
func requestLimits(r *corev1.ResourceRequirements) {
	requests := corev1.ResourceList{}
	maps.Copy(requests, r.Limits)
	maps.Copy(requests, r.Requests)
	r.Requests = requests
}

func setResources(spec map[string]any, list corev1.ResourceList) {
	if len(list) == 0 {
		return
	}
	set := map[string]any{}
	for name, quantity := range list {
		set[string(name)] = quantity.String()
	}
	spec["minResources"] = set
}

func setIf(spec map[string]any, key, value string) {
	if value != "" {
		spec[key] = value
	}
}

func annotate(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}
