package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
)

// advisePort warns where templates give different numbers to the port at which all replicas meet: some would wait for ever.
func (c *checker) advisePort(j subject) {
	sets, port := j.PortSet()
	for _, written := range slices.Sorted(maps.Keys(*j.ReplicaSpecs)) {
		role := (*j.ReplicaSpecs)[written]
		if role == nil || role.Replicas != nil && *role.Replicas == 0 {
			continue
		}
		container := naming.TrainingContainer(&role.Template.Spec, j.Kind.Layout.Container)
		if container == nil {
			continue
		}
		at := fmt.Sprintf("%s.%s.template.spec.containers[%d]", j.rolesAt(), written, slices.IndexFunc(role.Template.Spec.Containers,
			func(each corev1.Container) bool { return each.Name == container.Name }))
		c.advisePortVariables(at, j.Kind.Layout, container, sets, port)
		for i, p := range container.Ports {
			if strings.EqualFold(string(written), string(sets)) && p.Name == j.Kind.Layout.PortName && p.ContainerPort != port {
				c.warn(fmt.Sprintf("%s.ports[%d]", at, i), "the replicas meet at port %d, which a variable sets, not at this one: give both the same number", port)
			}
		}
	}
}

func (c *checker) advisePortVariables(at string, layout kubeflowv1.Layout, container *corev1.Container, sets kubeflowv1.ReplicaType, port int32) {
	for i, e := range container.Env {
		path := fmt.Sprintf("%s.env[%d]", at, i)
		n, err := strconv.ParseUint(e.Value, 10, 16)
		switch {
		case !slices.Contains(layout.PortVariables, e.Name):
		case err != nil || n == 0:
			c.warn(path, "only a number from 1 to 65535 is passed on to the other replicas: write %s as one", e.Name)
		case int32(n) != port:
			c.warn(path, "the replicas meet at port %d, which %s sets: give %s the same number, or leave it out", port, sets, e.Name)
		}
	}
}
