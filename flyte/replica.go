package flyte

import (
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/plugins"
)

// RestartPolicy says when a replica that ended is restarted; empty is Never.
type RestartPolicy string

// The restart policies that Flyte has. There is no ExitCode.
const (
	// RestartNever: a failure ends the job.
	RestartNever RestartPolicy = "Never"
	// RestartOnFailure restarts a replica that failed.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartAlways restarts a replica that ended.
	RestartAlways RestartPolicy = "Always"
)

func (p RestartPolicy) message() (plugins.RestartPolicy, error) {
	switch p {
	case "", RestartNever:
		return plugins.RestartPolicy_RESTART_POLICY_NEVER, nil
	case RestartOnFailure:
		return plugins.RestartPolicy_RESTART_POLICY_ON_FAILURE, nil
	case RestartAlways:
		return plugins.RestartPolicy_RESTART_POLICY_ALWAYS, nil
	}
	return 0, fmt.Errorf("restartPolicy: %q is unknown to Flyte: want Never, OnFailure or Always", p)
}

func restartPolicyOf(m plugins.RestartPolicy) RestartPolicy {
	switch m {
	case plugins.RestartPolicy_RESTART_POLICY_ON_FAILURE:
		return RestartOnFailure
	case plugins.RestartPolicy_RESTART_POLICY_ALWAYS:
		return RestartAlways
	}
	return RestartNever
}

// Replica is what a role sets for its pods; empty fields come from the task.
type Replica struct {
	// Image replaces the task's image.
	Image string
	// Requests and Limits replace the task's resources.
	Requests, Limits Resources
	// RestartPolicy is the role's; empty is Never.
	RestartPolicy RestartPolicy
}

// Group is a number of equal replicas.
type Group struct {
	Replica
	// Replicas is how many; 0 means that there is no such role.
	Replicas int32
}

// replicaFields are the four fields that flytekit writes for every role.
type replicaFields struct {
	replicas  int32
	image     string
	resources *core.Resources
	restart   plugins.RestartPolicy
}

func (g Group) fields(path string) (replicaFields, error) {
	if g.Replicas < 0 {
		return replicaFields{}, fmt.Errorf("%s.replicas: %d is negative", path, g.Replicas)
	}
	restart, err := g.RestartPolicy.message()
	if err != nil {
		return replicaFields{}, fmt.Errorf("%s.%w", path, err)
	}
	// flytekit always sends a resources message, even an empty one.
	resources := &core.Resources{Requests: g.Requests.entries(), Limits: g.Limits.entries()}
	return replicaFields{replicas: g.Replicas, image: g.Image, resources: resources, restart: restart}, nil
}

// replicaMessage is what the replica messages of all kinds have.
type replicaMessage interface {
	GetReplicas() int32
	GetImage() string
	GetResources() *core.Resources
	GetRestartPolicy() plugins.RestartPolicy
	GetCommon() *plugins.CommonReplicaSpec
}

// replicaSpec is a role as Flyte's backend reads it.
type replicaSpec struct {
	replicas  int32
	image     string
	resources *core.Resources
	restart   RestartPolicy
}

// specOf reads a role: only the common message if there is one, else the deprecated fields. A nil message is a role without
// replicas.
func specOf(m replicaMessage) replicaSpec {
	if c := m.GetCommon(); c != nil {
		return replicaSpec{c.GetReplicas(), c.GetImage(), c.GetResources(), restartPolicyOf(c.GetRestartPolicy())}
	}
	return replicaSpec{m.GetReplicas(), m.GetImage(), m.GetResources(), restartPolicyOf(m.GetRestartPolicy())}
}

func (s replicaSpec) hasResources() bool {
	return len(s.resources.GetRequests())+len(s.resources.GetLimits()) > 0
}

func (s replicaSpec) group(path string) (Group, error) {
	g := Group{Replicas: s.replicas, Replica: Replica{Image: s.image, RestartPolicy: s.restart}}
	var err error
	if g.Requests, err = resourcesOf(s.resources.GetRequests()); err != nil {
		return Group{}, fmt.Errorf("%s.resources.requests: %w", path, err)
	}
	if g.Limits, err = resourcesOf(s.resources.GetLimits()); err != nil {
		return Group{}, fmt.Errorf("%s.resources.limits: %w", path, err)
	}
	return g, nil
}

// Resources are flytekit's, each a Kubernetes quantity; empty means not requested.
type Resources struct {
	CPU, Memory, GPU, EphemeralStorage string
}

// entries keeps flytekit's order.
func (r Resources) entries() []*core.Resources_ResourceEntry {
	var entries []*core.Resources_ResourceEntry
	for _, e := range []struct {
		name  core.Resources_ResourceName
		value string
	}{
		{core.Resources_CPU, r.CPU},
		{core.Resources_MEMORY, r.Memory},
		{core.Resources_GPU, r.GPU},
		{core.Resources_EPHEMERAL_STORAGE, r.EphemeralStorage},
	} {
		if e.value != "" {
			entries = append(entries, &core.Resources_ResourceEntry{Name: e.name, Value: e.value})
		}
	}
	return entries
}

func resourcesOf(entries []*core.Resources_ResourceEntry) (Resources, error) {
	var r Resources
	place := map[core.Resources_ResourceName]*string{
		core.Resources_CPU:               &r.CPU,
		core.Resources_MEMORY:            &r.Memory,
		core.Resources_GPU:               &r.GPU,
		core.Resources_EPHEMERAL_STORAGE: &r.EphemeralStorage,
	}
	for _, e := range entries {
		to, known := place[e.GetName()]
		switch {
		case !known:
			return Resources{}, fmt.Errorf("%s is not a resource that Flyte gives to a pod", e.GetName())
		case *to != "":
			return Resources{}, fmt.Errorf("%s is named twice", e.GetName())
		}
		*to = e.GetValue()
	}
	return r, nil
}
