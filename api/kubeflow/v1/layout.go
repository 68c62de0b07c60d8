package v1

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trainyard/trainyard/api/naming"
)

// Layout is what differs between the manifests of two kinds: the field of the roles, their names, and the defaults of a role.
// +kubebuilder:object:generate=false
type Layout struct {
	// Kind is the kind's name.
	Kind string
	// ReplicaSpecs is the field of spec that has the roles.
	ReplicaSpecs string
	// Roles are the names of the roles, in the order in which their pods are created.
	Roles []ReplicaType
	// Container is the name of the training container. Without a container of this name it is the first one.
	Container string
	// PortName is the name of the training container's port that the others connect to, empty for none. Port is its number if the
	// template has no port of this name.
	PortName string
	Port     int32
	// PortVariables are the environment variables by which a template can set that number, for the whole job.
	PortVariables []string
	// RestartPolicy is that of a role that names none.
	RestartPolicy RestartPolicy
}

// Job is a job of any kind of this group.
// +kubebuilder:object:generate=false
type Job interface {
	metav1.Object
	runtime.Object
	// Parts are what jobs of every kind have.
	Parts() Parts
	// SetDefaults fills in what the manifest leaves out: canonical role names, the effective policy (into runPolicy), and the
	// defaults of each role. It changes the job it is called on, so call it on a copy; a second call changes nothing.
	SetDefaults()
}

// Parts are what jobs of every kind have. They point into the job: a change to them changes the job.
// +kubebuilder:object:generate=false
type Parts struct {
	Layout       Layout
	RunPolicy    *RunPolicy
	FlatPolicy   *FlatPolicy
	ReplicaSpecs *map[ReplicaType]*ReplicaSpec
	Status       *JobStatus
}

// Policy is the policy the job runs under.
func (p Parts) Policy() LifecyclePolicy {
	return EffectivePolicy(p.RunPolicy.LifecyclePolicy, p.FlatPolicy.LifecyclePolicy)
}

// setDefaults sets the defaults that all kinds share.
func (p Parts) setDefaults() {
	p.RunPolicy.LifecyclePolicy = p.Policy()
	*p.ReplicaSpecs = canonicalRoles(*p.ReplicaSpecs, p.Layout.Roles)
	layout := p.Layout
	if _, port := p.PortSet(); port != 0 {
		layout.Port = port
	}
	for _, role := range *p.ReplicaSpecs {
		role.setDefaults(layout)
	}
}

// PortSet is the port that a template sets by a variable, and the role that sets it; 0 where none does. It is the port of all
// replicas: those that did not get it would look for the others at another one. The role that leads comes first.
func (p Parts) PortSet() (ReplicaType, int32) {
	for _, name := range p.Layout.Roles {
		role := canonicalRoles(*p.ReplicaSpecs, p.Layout.Roles)[name]
		if role == nil || role.Replicas != nil && *role.Replicas == 0 {
			continue
		}
		if port := p.Layout.portIn(naming.TrainingContainer(&role.Template.Spec, p.Layout.Container)); port != 0 {
			return name, port
		}
	}
	return "", 0
}

// portIn is the port that a container sets by a variable. A value that is not written as a number is known only in its pod.
func (l Layout) portIn(container *corev1.Container) int32 {
	if container == nil {
		return 0
	}
	for _, e := range container.Env {
		if port, err := strconv.ParseUint(e.Value, 10, 16); err == nil && port > 0 && slices.Contains(l.PortVariables, e.Name) {
			return int32(port)
		}
	}
	return 0
}
