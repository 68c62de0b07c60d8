package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// fetch reads the job: from the cache, unless what we wrote ourselves is newer, and from the API server when we do not
// know what became of our last write.
func (r *Reconciler) fetch(ctx context.Context, name types.NamespacedName) (manifest.Object, error) {
	m := r.memories.job(name)
	obj := r.kind.New()
	reader := client.Reader(r.client)
	if m.unsure {
		reader = r.live
	}
	if err := reader.Get(ctx, name, obj); err != nil {
		return nil, err
	}
	m.forJob(obj.GetUID())
	switch {
	case m.unsure:
		m.unsure, m.fresh, m.newest = false, true, obj.DeepCopyObject().(manifest.Object)
	case m.newest != nil && newer(m.newest, obj):
		return m.newest.DeepCopyObject().(manifest.Object), nil
	default:
		m.newest = nil
	}
	return obj, nil
}

// observe gathers what the caches know of the job's children. It does not change what it reads there.
func (p *pass) observe(ctx context.Context) (job.Observed, error) {
	o := job.Observed{Now: p.at, Job: p.manifest.Job, Status: p.manifest.Status, Rejection: p.rejection, Fresh: p.fresh, NodesLooked: p.nodesLooked}
	mine := []client.ListOption{client.InNamespace(o.Job.Namespace), client.MatchingFields{indexJob: p.key()}, client.UnsafeDisableDeepCopy}
	var pods corev1.PodList
	if err := p.client.List(ctx, &pods, mine...); err != nil {
		return o, fmt.Errorf("listing the pods of %s: %w", o.Job.Name, err)
	}
	o.Pods = sorted(pointers(pods.Items), unseen(p.memory, "Pod", pointers(pods.Items), p.at))
	return o, p.observeChildren(ctx, &o, mine)
}

// answer gets the facts that the rules ask for.
func (p *pass) answer(ctx context.Context, o *job.Observed, ask job.Ask) error {
	if ask.Pods {
		var pods corev1.PodList
		labels := client.MatchingLabels{naming.LabelJobName: o.Job.Name, naming.LabelOperatorName: naming.OperatorName(p.kind.Name())}
		if err := p.live.List(ctx, &pods, client.InNamespace(o.Job.Namespace), labels); err != nil {
			return fmt.Errorf("listing the pods of %s: %w", o.Job.Name, err)
		}
		o.Pods, o.Live = sorted(pointers(pods.Items), nil), true
	}
	for _, node := range ask.Nodes {
		if o.Nodes == nil {
			o.Nodes = map[string]job.NodeState{}
		}
		o.Nodes[node], p.nodesLooked = p.readNode(ctx, node), p.at
	}
	return nil
}

func (p *pass) readNode(ctx context.Context, name string) job.NodeState {
	var node corev1.Node
	if err := p.live.Get(ctx, types.NamespacedName{Name: name}, &node); apierrors.IsNotFound(err) {
		return job.NodeGone
	} else if err != nil {
		return job.NodeUnknown
	}
	return stateOfNode(&node)
}

// stateOfNode reads whether the kubelet of a node reports. One that says it is not ready does: what it runs is running.
func stateOfNode(node *corev1.Node) job.NodeState {
	tainted := func(key string) bool {
		return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
	silent := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
	switch {
	case tainted(corev1.TaintNodeOutOfService):
		return job.NodeOutOfService
	case silent && tainted(corev1.TaintNodeUnreachable):
		return job.NodeUnreachable
	case isLeaving(node):
		return job.NodeLeaving
	default:
		return job.NodeAlive
	}
}

// maintenance are the node conditions that announce a maintenance (KEP-5683), and removal the taints by which autoscalers and clouds say
// that they are about to remove a node.
var (
	maintenance = []corev1.NodeConditionType{"MaintenancePlanned", "MaintenanceInProgress", "DrainInProgress", "GracefulNodeShutdownInProgress"}
	removal     = []string{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "cloud.google.com/impending-node-termination"}
)

// isLeaving reports whether a node is about to be drained or maintained: it is cordoned, or says so.
func isLeaving(node *corev1.Node) bool {
	return node.Spec.Unschedulable ||
		slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Status == corev1.ConditionTrue && slices.Contains(maintenance, c.Type)
		}) ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(removal, t.Key) })
}

// key is how the job's children are found in the index.
func (p *pass) key() string { return naming.OperatorName(p.kind.Name()) + "/" + p.manifest.Job.Name }

func pointers[T any](items []T) []*T {
	list := make([]*T, len(items))
	for i := range items {
		list[i] = &items[i]
	}
	return list
}

func sorted[T client.Object](seen, unseen []T) []T {
	all := append(seen, unseen...)
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}
