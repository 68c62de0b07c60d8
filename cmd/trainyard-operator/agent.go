package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/manifest"
)

// agent is how pods of MPI jobs get their program: from the image of this operator, unless a flag names another. In a cluster the host
// is named as the pod is. An operator that cannot find out its image runs all other jobs.
func agent(ctx context.Context, config *rest.Config, o options) manifest.Agent {
	found := manifest.DefaultAgent
	if o.agentImage != "" {
		found.Image = o.agentImage
		return found
	}
	image, err := ownImage(ctx, config, o)
	if err != nil {
		ctrl.Log.Info("MPI jobs need --agent-image, because the operator's own image is not known", "reason", err.Error())
		return found
	}
	found.Image = image
	return found
}

func ownImage(ctx context.Context, config *rest.Config, o options) (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return "", err
	}
	var pod corev1.Pod
	if err := c.Get(ctx, client.ObjectKey{Namespace: leaseNamespace(o), Name: name}, &pod); err != nil {
		return "", err
	}
	for _, container := range pod.Spec.Containers {
		if container.Name == "operator" {
			return container.Image, nil
		}
	}
	return "", fmt.Errorf("pod %s has no container operator", name)
}
