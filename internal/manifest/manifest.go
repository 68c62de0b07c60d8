// Package manifest is between the API kinds and the engine. A kind reads an API object into a [Manifest]: the neutral
// job the rules work on, and what its replicas need to find each other. From that, and from nothing else, this package
// makes the children: pods, Services and the autoscaler. What is the same for all kinds is here.
package manifest

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest/traceid"
)

// Object is an API object of any kind of job.
type Object = job.Object

// Manifest is a job as its kind reads it.
type Manifest struct {
	Job    job.Job
	Status job.Status
	// Owner is the kind and version under which children name the job as their owner.
	Owner schema.GroupVersionKind
	// Templates are the pod templates, by role.
	Templates map[string]*corev1.PodTemplateSpec
	// Env is the environment of a replica in an attempt.
	Env func(r job.Replica, attempt int32) Env
	// Metrics are those by which an autoscaler sizes the elastic role; none without one.
	Metrics []autoscalingv2.MetricSpec
	// IndexKey is a further label and annotation with the index of a pod, empty for none.
	IndexKey string
	// Leader is the replica the others look to. With Rendezvous it is also found by its bare name.
	Leader     job.Replica
	Rendezvous bool
	// ClusterDomain is the DNS domain of the cluster; empty for DefaultClusterDomain.
	ClusterDomain string
	// Equip adds what the pod of a replica has only in this kind, after all else; nil for nothing.
	Equip func(pod *corev1.Pod, r job.Replica)
	// Agent is how pods get the program that starts processes in other pods. The operator sets it.
	Agent Agent
	// KeySecret is the name of the Secret with which replicas recognise each other, empty for none.
	KeySecret string
	// Placement is what the job says about how its replicas are placed together, nil where it says nothing.
	Placement *Placement
	// Trace is the trace of the job. If Traced is set, containers get their place in it.
	Trace  traceid.Trace
	Traced bool
	// gangs is who places the replicas together, nil for nobody.
	gangs *GangScheduler
}

// Agent is how an init container delivers package mpiagent to a pod.
type Agent struct {
	// Image has the program, Command runs it there.
	Image   string
	Command []string
	// Env is for the containers that have it: the init container and the training container.
	Env []corev1.EnvVar
}

// DefaultAgent is the agent of the operator's image.
var DefaultAgent = Agent{Image: "trainyard-operator", Command: []string{"/trainyard-agent"}}

// Env is the environment of a replica. A variable that the template sets is left as it is.
type Env struct {
	// Everywhere is for all containers but init containers, Training for the training container alone, Named for others by
	// their names.
	Everywhere, Training []corev1.EnvVar
	Named                map[string][]corev1.EnvVar
}

func (m *Manifest) owner() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: m.Owner.GroupVersion().String(), Kind: m.Owner.Kind, Name: m.Job.Name, UID: m.Job.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}
