package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	for _, role := range *p.ReplicaSpecs {
		role.setDefaults(p.Layout)
	}
}
