package cli

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/yard"
)

// otherOperators are those that run our kinds. Their Deployments are known by name, or by a part of an image's name where the
// Deployment has another name.
var otherOperators = []struct{ operator, deployment, image string }{
	{"Training Operator", "training-operator", "kubeflow/training-operator"},
	{"Kubeflow Trainer", "kubeflow-trainer-controller-manager", "kubeflow/trainer/trainer-controller-manager"},
	{"mpi-operator", "mpi-operator", "mpioperator/mpi-operator"},
}

// refuseOtherOperators returns an error if another operator runs the kinds that we are about to install. One that is scaled to 0 does not
// run.
func refuseOtherOperators(ctx context.Context, y *yard.Yard) error {
	var deployments appsv1.DeploymentList
	if err := y.List(ctx, &deployments); apierrors.IsForbidden(err) {
		return fmt.Errorf("looking for other operators of the same kinds: %w; installing needs the rights of a cluster administrator", err)
	} else if err != nil {
		return fmt.Errorf("looking for other operators of the same kinds: %w", err)
	}
	for _, d := range deployments.Items {
		if operator := otherOperatorIn(&d); operator != "" {
			return fmt.Errorf("%s runs the same kinds of jobs on this cluster (deployment %s in namespace %s): stop it with `kubectl -n %[3]s scale deployment %[2]s --replicas=0`, or install anyway with --beside-others",
				operator, d.Name, d.Namespace)
		}
	}
	return nil
}

// otherOperatorIn names the operator that a Deployment runs, if it is another one of our kinds.
func otherOperatorIn(d *appsv1.Deployment) string {
	if ptr.Deref(d.Spec.Replicas, 1) == 0 {
		return ""
	}
	for _, r := range otherOperators {
		if d.Name == r.deployment {
			return r.operator
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if strings.Contains(c.Image, r.image) {
				return r.operator
			}
		}
	}
	return ""
}
