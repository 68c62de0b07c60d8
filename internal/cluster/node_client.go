package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// ErrOneNode says that a cluster was started with one node, which holds the control plane.
var ErrOneNode = errors.New("the local cluster has one node, which holds the control plane: start it with --nodes 2 or more")

// AskNode has a local cluster carry out a request to one of its nodes, NodeKill for example, and returns when that is done.
func AskNode(ctx context.Context, client kubernetes.Interface, name, request string) error {
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if n.Labels[localLabel] == "" {
		return fmt.Errorf("node %s is not one of a local cluster", name)
	}
	all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(all.Items) == 1 {
		return ErrOneNode
	}
	if err := annotate(ctx, client, name, map[string]any{NodeRequest: request, NodeError: nil}, nil); err != nil {
		return err
	}
	return awaitAnswer(ctx, client, name, request)
}

// awaitAnswer returns when the cluster has carried a request out, or says why it has not.
func awaitAnswer(ctx context.Context, client kubernetes.Interface, name, request string) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && request == NodeRemove:
			return true, nil
		case err != nil:
			return false, err
		case n.Annotations[NodeRequest] != "":
			return false, nil
		case n.Annotations[NodeError] != "":
			return false, fmt.Errorf("node %s: %s", name, n.Annotations[NodeError])
		}
		return true, nil
	})
}
