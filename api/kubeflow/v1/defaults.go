package v1

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/api/naming"
)

// canonicalRoles gives the roles their canonical names, whatever letter case the manifest has. A role without a spec is left out.
// If a role is there in two spellings, which the API server refuses, the canonical one wins.
func canonicalRoles(roles map[ReplicaType]*ReplicaSpec, canonical []ReplicaType) map[ReplicaType]*ReplicaSpec {
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

func (role *ReplicaSpec) setDefaults(layout Layout) {
	if role.Replicas == nil {
		role.Replicas = new(int32(1))
	}
	if role.RestartPolicy == "" {
		role.RestartPolicy = layout.RestartPolicy
	}
	container := naming.TrainingContainer(&role.Template.Spec, layout.Container)
	if container == nil || layout.PortName == "" || slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == layout.PortName }) {
		return
	}
	container.Ports = append(container.Ports, corev1.ContainerPort{Name: layout.PortName, ContainerPort: layout.Port})
}

// setElasticBounds makes the range of an elastic job include the number of Workers it starts with. Otherwise it could never start.
func setElasticBounds(low, high **int32, workers int32) {
	lowest, highest := workers, workers
	if *low != nil {
		highest = max(highest, **low)
	}
	if *high != nil {
		lowest = min(lowest, **high)
	}
	if *low == nil {
		*low = new(lowest)
	}
	if *high == nil {
		*high = new(highest)
	}
}
