package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Whoever reads Secrets can read those of others, so the operator only creates them, and only where it is asked to.
func TestTheRightsForMPIJobsAreToCreateSecretsOnly(t *testing.T) {
	helm, kustomize := helmed(t, map[string]any{"mpi": true}), kustomized(t, "mpi")
	for _, name := range []string{"ClusterRole/trainyard-operator-mpi", "ClusterRoleBinding/trainyard-operator-mpi"} {
		if diff := cmp.Diff(kustomize[name], helm[name]); diff != "" {
			t.Errorf("%s (-kustomize +helm):\n%s", name, diff)
		}
	}
	role := kustomize["ClusterRole/trainyard-operator-mpi"].(*rbacv1.ClusterRole)
	if diff := cmp.Diff([]string{"/secrets create"}, rights(role.Rules)); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
	container := helm["Deployment/trainyard-operator"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Args, "--agent-image="+container.Image) {
		t.Errorf("the agent is not that of %s: %q", container.Image, container.Args)
	}
}
