// Package kinds lists the kinds of jobs this engine runs. A kind answers questions and never acts: what its roles are, which role's
// end ends the job, what a failure restarts, what the environment of each replica is. Each has a folder of its own. The kubeflow.org
// kinds are rows of one table, package kubeflow reads them.
package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/jax"
	"github.com/trainyard/trainyard/internal/kinds/mpi"
	"github.com/trainyard/trainyard/internal/kinds/paddle"
	"github.com/trainyard/trainyard/internal/kinds/pytorch"
	"github.com/trainyard/trainyard/internal/kinds/tensorflow"
	"github.com/trainyard/trainyard/internal/kinds/trainjob"
	"github.com/trainyard/trainyard/internal/kinds/xgboost"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Kind is what the engine asks of a kind of job.
type Kind interface {
	// Name is the API kind, GroupVersion where the API has it, Framework its name in metrics.
	Name() string
	GroupVersion() schema.GroupVersion
	Framework() string
	// New is an empty API object of the kind.
	New() manifest.Object
	// Read takes the job out of an API object, which it leaves as it is. Defaults are applied on the way.
	Read(manifest.Object) *manifest.Manifest
	// Conditions are the job's conditions in the words of the rules, without the cost of Read.
	Conditions(manifest.Object) []kubeflowv1.JobCondition
	// Write puts a status into the API object that the manifest was read from.
	Write(manifest.Object, *manifest.Manifest, job.Status)
}

// Tools is what the command line asks of a kind in addition.
type Tools interface {
	// Suspend edits an API object so that its job is suspended, or resumed.
	Suspend(obj manifest.Object, suspend bool)
	// Resize edits an API object so that a role has n replicas, the role that trains where none is named, and returns how the
	// object names the role. It is not ok where there is no such role, or the object does not say its size.
	Resize(obj manifest.Object, role string, n int32) (name string, ok bool)
}

// Adapter is a kind with everything that is asked of it.
type Adapter interface {
	Kind
	Tools
}

// Based is a kind whose jobs are made from another object, as TrainJobs are from their runtime. The engine brings that object
// once. The job keeps what it needs of it in its status, and Read then needs nothing but the job.
type Based interface {
	Kind
	// Bases are the kinds of such objects.
	Bases() []manifest.Object
	// Wants is the object that a job still needs, by its kind and name; nil once the job has taken it.
	Wants(job manifest.Object) manifest.Object
	// Take keeps in the job what it needs of the object.
	Take(job, base manifest.Object) error
}

// All are the kinds, in the order in which they are set up.
var All = []Adapter{pytorch.Kind, tensorflow.Kind, jax.Kind, xgboost.Kind, paddle.Kind, mpi.Kind, trainjob.Kind{}}

// Of is the kind of an object in whatever version, nil if it is no job of ours.
func Of(object schema.GroupVersionKind) Adapter {
	if kind := named(object.Kind); kind != nil && kind.GroupVersion().Group == object.Group {
		return kind
	}
	return nil
}

// Misplaced is the kind that has an object's name in another group, nil where the object is in its own.
func Misplaced(object schema.GroupVersionKind) Adapter {
	if kind := named(object.Kind); kind != nil && kind.GroupVersion().Group != object.Group {
		return kind
	}
	return nil
}

func named(name string) Adapter {
	for _, kind := range All {
		if kind.Name() == name {
			return kind
		}
	}
	return nil
}
