package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/trainyard/trainyard/internal/procrun"
)

// Annotations of nodes, by which others ask this cluster to make a node fail and see what became of it.
const (
	NodeRequest = "trainyard.dev/node-request" // what to do; removed when it is done
	NodeState   = "trainyard.dev/node-state"   // what the node is; absent where it works
	NodeError   = "trainyard.dev/node-error"   // why the last request could not be carried out
)

// nodeRequests carries out what the annotations of nodes ask for.
type nodeRequests struct {
	client kubernetes.Interface
	nodes  map[string]faulty
	mu     sync.Mutex // one request at a time
}

// watch begins to watch the nodes.
func (r *nodeRequests) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(r.client, 0)
	check := func(object any) {
		if n := object.(*corev1.Node); n.Annotations[NodeRequest] != "" {
			go r.handle(ctx, n.Name)
		}
	}
	_, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: check, UpdateFunc: func(_, object any) { check(object) },
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	factory.Start(ctx.Done())
	return nil
}

// handle carries out the request that a node has now: the event that brought us here may be older.
func (r *nodeRequests) handle(ctx context.Context, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || n.Annotations[NodeRequest] == "" {
		return
	}
	request, state, problem := n.Annotations[NodeRequest], n.Annotations[NodeState], any(nil)
	if node := r.nodes[name]; node == nil {
		problem = "it is not a node of this cluster"
	} else if state, err = node.apply(request); err != nil {
		problem = err.Error()
	}
	klog.InfoS("A node was made to fail, or restored", "node", name, "request", request, "state", state, "problem", problem)
	if request == NodeRemove && problem == nil {
		delete(r.nodes, name)
		err = r.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	} else {
		err = annotate(ctx, r.client, name, map[string]any{NodeRequest: nil, NodeState: orNil(state), NodeError: problem}, nil)
	}
	if err != nil {
		klog.ErrorS(err, "Answering a request to a node", "node", name)
	}
}

// recordCrash notes that a node ended without a request.
func (r *nodeRequests) recordCrash(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := annotate(context.Background(), r.client, name, map[string]any{NodeState: NodeKilled}, nil); err != nil {
		klog.ErrorS(err, "Recording that a node ended", "node", name)
	}
}

func orNil(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// annotate changes the annotations and labels of a node; a nil value removes one.
func annotate(ctx context.Context, client kubernetes.Interface, name string, annotations map[string]any, labels map[string]string) error {
	metadata := map[string]any{"annotations": annotations}
	if labels != nil {
		metadata["labels"] = labels
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// reconcileNodes makes the Node objects of an earlier run those of this one: what was done to a node is undone, labels are as the
// options say, and nodes that are no more are deleted with what they kept.
func reconcileNodes(ctx context.Context, client kubernetes.Interface, options Options) error {
	if _, err := os.Stat(furtherNodesPath(options.DataDir)); err != nil && options.Nodes == 1 && len(options.NodeLabels) == 0 {
		return nil // there is one node, and never was another
	}
	existing, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	wanted := map[string]nodeSpec{}
	for _, spec := range options.nodes() {
		wanted[spec.Name] = spec
	}
	for _, n := range existing.Items {
		spec, stays := wanted[n.Name]
		if stays {
			err = annotate(ctx, client, n.Name, map[string]any{NodeRequest: nil, NodeState: nil, NodeError: nil}, spec.Labels)
		} else {
			err = client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("updating node %s: %w", n.Name, err)
		}
	}
	return removeOldNodes(options.DataDir, wanted)
}

// removeOldNodes removes the folders of further nodes that are no more.
func removeOldNodes(dataDir string, wanted map[string]nodeSpec) error {
	entries, _ := os.ReadDir(furtherNodesPath(dataDir))
	for i, entry := range entries {
		if _, stays := wanted[entry.Name()]; stays {
			continue
		}
		old := nodeSpec{Name: entry.Name(), Index: i + 1}
		procrun.Sweep(old.cgroup(dataDir))
		if err := os.RemoveAll(old.dir(dataDir)); err != nil {
			return fmt.Errorf("removing what node %s kept: %w", entry.Name(), err)
		}
	}
	return nil
}
