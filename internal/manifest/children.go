package manifest

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trainyard/trainyard/internal/job"
)

// ChildKind is a kind of children that jobs have besides pods, as the API serves it.
type ChildKind struct {
	job.ChildKind
	GroupVersion schema.GroupVersion
	// New is an empty object of the kind.
	New func() Object
	// Optional says that a cluster may lack the kind. It is watched where it is served.
	Optional bool
	// Fill completes a child when it is created, with what must be different each time; nil for nothing.
	Fill func(Object) error
	// change makes an existing child, a copy of which it is given, what the job wants it to be. Kinds without it are never
	// updated.
	change func(have, want Object)
	// members is how many pods a pod group places together; setMembers sets it. Other kinds have neither.
	members    func(Object) int32
	setMembers func(Object, int32)
	// says is what the scheduler says about a pod group that it cannot place.
	says func(Object) string
}

// GroupVersionKind is where the API has the kind.
func (k ChildKind) GroupVersionKind() schema.GroupVersionKind { return k.GroupVersion.WithKind(k.Kind) }

// ChildKinds are all kinds of children that jobs have besides pods.
var ChildKinds = []ChildKind{
	{ChildKind: job.Services, GroupVersion: corev1.SchemeGroupVersion, New: func() Object { return &corev1.Service{} }},
	{
		ChildKind: job.Autoscalers, GroupVersion: autoscalingv2.SchemeGroupVersion,
		New: func() Object { return &autoscalingv2.HorizontalPodAutoscaler{} }, change: changeAutoscaler,
	},
	{ChildKind: job.Keys, GroupVersion: corev1.SchemeGroupVersion, New: func() Object { return &corev1.Secret{} }, Fill: fillKeys},
	GangSchedulers[0].Group, GangSchedulers[1].Group, GangSchedulers[2].Group,
}

// Children are the objects that the job wants besides its pods.
func (m *Manifest) Children() []job.Child {
	var children []job.Child
	for _, name := range m.serviceNames() {
		children = append(children, job.Child{ChildKind: job.Services, Object: m.service(name)})
	}
	if m.Autoscaled() {
		children = append(children, job.Child{ChildKind: job.Autoscalers, Object: m.autoscaler()})
	}
	if m.KeySecret != "" {
		children = append(children, job.Child{ChildKind: job.Keys, Object: m.keys()})
	}
	return children
}

// Observe is a child as the API server has it, with what the job wants of it.
func (k ChildKind) Observe(have Object, j job.Job) job.Child {
	child := job.Child{ChildKind: k.ChildKind, Object: have}
	if k.members != nil {
		child.Members, child.Says = k.members(have), k.says(have)
	}
	for _, want := range j.Children {
		if k.change == nil || want.ChildKind != k.ChildKind || want.GetName() != have.GetName() {
			continue
		}
		changed := have.DeepCopyObject().(Object)
		if k.change(changed, want.Object); !equality.Semantic.DeepEqual(have, changed) {
			child.Changed = changed
		}
	}
	return child
}

// WithMembers is a child's object with the number of members that the rules want. The object itself stays as it is.
func WithMembers(child job.Child) Object {
	for _, kind := range ChildKinds {
		if kind.ChildKind == child.ChildKind && kind.setMembers != nil {
			obj := child.DeepCopyObject().(Object)
			kind.setMembers(obj, child.Members)
			return obj
		}
	}
	return child.Object
}

// childMeta is the metadata of every child: who owns it, and the labels by which it is found.
func (m *Manifest) childMeta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.Job.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{m.owner()}}
}
