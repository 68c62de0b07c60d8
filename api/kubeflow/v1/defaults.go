package v1

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
)

// roleDefaults is what a role of one kind has where the manifest says nothing.
type roleDefaults struct {
	container     string
	portName      string
	port          int32
	restartPolicy RestartPolicy
}

// SetDefaults fills in what the manifest leaves out: canonical role names, the effective policy (into runPolicy), and the defaults of
// each role. It changes the job it is called on, so call it on a copy; a second call changes nothing.
func (job *PyTorchJob) SetDefaults() {
	spec := &job.Spec
	spec.RunPolicy.LifecyclePolicy = EffectivePolicy(spec.RunPolicy.LifecyclePolicy, spec.LifecyclePolicy)
	spec.PyTorchReplicaSpecs = canonicalRoles(spec.PyTorchReplicaSpecs, PyTorchMaster, PyTorchWorker)
	for _, role := range spec.PyTorchReplicaSpecs {
		role.setDefaults(roleDefaults{PyTorchContainer, PyTorchPortName, PyTorchPort, RestartPolicyOnFailure})
	}
	if worker := spec.PyTorchReplicaSpecs[PyTorchWorker]; spec.ElasticPolicy != nil && worker != nil {
		spec.ElasticPolicy.setDefaults(*worker.Replicas)
	}
	if spec.NprocPerNode == nil && !spec.ElasticPolicy.setsProcesses() {
		spec.NprocPerNode = new("auto")
	}
}

// SetDefaults fills in what the manifest leaves out: canonical role names, the effective policy (into runPolicy), and the defaults of
// each role. It changes the job it is called on, so call it on a copy; a second call changes nothing.
func (job *TFJob) SetDefaults() {
	spec := &job.Spec
	spec.RunPolicy.LifecyclePolicy = EffectivePolicy(spec.RunPolicy.LifecyclePolicy, spec.LifecyclePolicy)
	spec.TFReplicaSpecs = canonicalRoles(spec.TFReplicaSpecs, TFChief, TFMaster, TFPS, TFWorker, TFEvaluator)
	for _, role := range spec.TFReplicaSpecs {
		role.setDefaults(roleDefaults{TFContainer, TFPortName, TFPort, RestartPolicyNever})
	}
	if spec.SuccessPolicy == nil {
		spec.SuccessPolicy = new(SuccessPolicyDefault)
	}
}

// canonicalRoles gives the roles their canonical names, whatever letter case the manifest has. A role without a spec is left out.
// Where two spellings of one role are there, which the API server refuses, the canonical one wins.
func canonicalRoles(roles map[ReplicaType]*ReplicaSpec, canonical ...ReplicaType) map[ReplicaType]*ReplicaSpec {
	named := make(map[ReplicaType]*ReplicaSpec, len(roles))
	for written, spec := range roles {
		name := written
		for _, role := range canonical {
			if strings.EqualFold(string(written), string(role)) {
				name = role
			}
		}
		if spec != nil && (named[name] == nil || name == written) {
			named[name] = spec
		}
	}
	return named
}

func (role *ReplicaSpec) setDefaults(defaults roleDefaults) {
	if role.Replicas == nil {
		role.Replicas = new(int32(1))
	}
	if role.RestartPolicy == "" {
		role.RestartPolicy = defaults.restartPolicy
	}
	container := naming.TrainingContainer(&role.Template.Spec, defaults.container)
	if container == nil || slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == defaults.portName }) {
		return
	}
	container.Ports = append(container.Ports, corev1.ContainerPort{Name: defaults.portName, ContainerPort: defaults.port})
}

// setsProcesses tells whether the processes of each pod are counted in their old place.
func (elastic *ElasticPolicy) setsProcesses() bool {
	return elastic != nil && elastic.NProcPerNode != nil && *elastic.NProcPerNode > 0
}

// setDefaults lets the range of an elastic job include the number of Workers it starts with, so that it can start.
func (elastic *ElasticPolicy) setDefaults(workers int32) {
	lowest, highest := workers, workers
	if elastic.MinReplicas != nil {
		highest = max(highest, *elastic.MinReplicas)
	}
	if elastic.MaxReplicas != nil {
		lowest = min(lowest, *elastic.MaxReplicas)
	}
	if elastic.MinReplicas == nil {
		elastic.MinReplicas = new(lowest)
	}
	if elastic.MaxReplicas == nil {
		elastic.MaxReplicas = new(highest)
	}
}
