//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"github.com/trainyard/trainyard/internal/cluster"
)

// nodeFlags are the flags of `up` that say which nodes the local cluster has.
type nodeFlags struct {
	count  int
	labels []string
}

func addNodeFlags(cmd *cobra.Command, n *nodeFlags) {
	cmd.Flags().IntVar(&n.count, "nodes", 1, "how many nodes the cluster has")
	cmd.Flags().StringArrayVar(&n.labels, "node-labels", nil,
		"a label of the nodes, KEY=VALUE for all or KEY=VALUE,VALUE,… for the nodes in turn; may be repeated")
}

// apply puts the flags into the options of a cluster.
func (n *nodeFlags) apply(o *cluster.Options) error {
	if n.count < 1 || n.count > cluster.MaxNodes {
		return usageError{fmt.Errorf("--nodes %d: use a number from 1 to %d", n.count, cluster.MaxNodes)}
	}
	labels, err := cluster.ParseNodeLabels(n.labels)
	if err != nil {
		return usageError{err}
	}
	o.Nodes, o.NodeLabels = n.count, labels
	return nil
}

// nodeVerb is a verb of `trainyard node` about one node, with what it says in the end.
type nodeVerb struct {
	name, short, done string
	run               func(ctx context.Context, client kubernetes.Interface, node string) error
}

const (
	noticed  = " Kubernetes notices within a minute."
	undoable = " `trainyard node restore %[1]s` undoes it."
)

var nodeVerbs = []nodeVerb{
	{"drain", "Evict the pods of a node, and let no new ones come", "%s is drained: its pods are evicted, and no new ones come." + undoable, drainNode},
	{cluster.NodeKill, "End a node without warning: its kubelet and its pods' processes are gone",
		"%s is killed: its kubelet and its pods' processes are gone." + noticed + undoable, nil},
	{cluster.NodeFreeze, "Stop the kubelet of a node: it is silent, and its pods' processes go on",
		"%s is frozen: its kubelet is silent, and its pods' processes go on." + noticed + undoable, nil},
	{cluster.NodeBreak, "Let the container runtime of a node refuse everything, so that the node is not ready",
		"%s is broken: its container runtime refuses everything." + noticed + undoable, nil},
	{cluster.NodeReboot, "End a node and start it again: its pods' processes are gone",
		"%s has rebooted: its pods' processes are gone, and its kubelet runs again.", nil},
	{cluster.NodeRestore, "Undo what was done to a node", "%s is restored.", restoreNode},
	{cluster.NodeRemove, "Remove a node for good, with its pods", "%s is removed.", nil},
}

func nodeCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "node",
		Short: "List the nodes of the local cluster, and make them fail",
		Long: `List the nodes of the local cluster, and make them fail, to see a job survive it.

"trainyard up --nodes 3" starts a cluster of three nodes. The first one, trainyard, holds the control plane: it can
be drained and broken, but not killed.`,
	}
	list := &cobra.Command{
		Use: "list", Short: "List the nodes", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return listNodes(cmd, &t) },
	}
	cmd.AddCommand(list)
	for _, v := range nodeVerbs {
		cmd.AddCommand(v.command(&t))
	}
	for _, sub := range cmd.Commands() {
		addCluster(sub, &t, "the kubeconfig of the local cluster (default: KUBECONFIG, else the local cluster while it runs)")
		addDataDir(sub, &t.dataDir)
	}
	return cmd
}

func (v nodeVerb) command(t *target) *cobra.Command {
	return &cobra.Command{
		Use: v.name + " NAME", Short: v.short, Args: oneArgument("node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			client, err := t.localClient()
			if err != nil {
				return err
			}
			if v.run == nil {
				err = cluster.AskNode(ctx, client, args[0], v.name)
			} else {
				err = v.run(ctx, client, args[0])
			}
			switch {
			case apierrors.IsNotFound(err):
				return fmt.Errorf("there is no node %s: `trainyard node list` lists them", args[0])
			case ctx.Err() != nil:
				return outcome(exitInterrupted)
			case err != nil:
				return t.explain(err)
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			out.printf(v.done+"\n", args[0])
			return out.err
		},
	}
}

// localClient is access to the target's cluster, which must be a local one: nobody is to drain another's nodes by mistake.
func (t *target) localClient() (kubernetes.Interface, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	if !t.local {
		return nil, usageError{fmt.Errorf("%s is not a local cluster, which `trainyard up` starts", config.Host)}
	}
	return kubernetes.NewForConfig(config)
}

// drainNode evicts a node's pods and waits until they are gone.
func drainNode(ctx context.Context, client kubernetes.Interface, name string) error {
	helper, n, err := drainHelper(ctx, client, name)
	if err != nil {
		return err
	}
	if err := drain.RunCordonOrUncordon(helper, n, true); err != nil {
		return fmt.Errorf("closing node %s to new pods: %w", name, err)
	}
	pods, problems := helper.GetPodsForDeletion(name)
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("draining node %s: %w", name, err)
	}
	if err := helper.DeleteOrEvictPods(pods.Pods()); err != nil {
		return fmt.Errorf("draining node %s: %w", name, err)
	}
	return nil
}

// restoreNode undoes a drain, and whatever else was done to a node.
func restoreNode(ctx context.Context, client kubernetes.Interface, name string) error {
	helper, n, err := drainHelper(ctx, client, name)
	if err != nil {
		return err
	}
	if err := drain.RunCordonOrUncordon(helper, n, false); err != nil {
		return fmt.Errorf("opening node %s to new pods: %w", name, err)
	}
	if err := cluster.AskNode(ctx, client, name, cluster.NodeRestore); !errors.Is(err, cluster.ErrOneNode) {
		return err
	}
	return nil
}

// drainHelper is kubectl's own drain. A local cluster's node is drained of all its pods but those of DaemonSets.
func drainHelper(ctx context.Context, client kubernetes.Interface, name string) (*drain.Helper, *corev1.Node, error) {
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	return &drain.Helper{
		Ctx: ctx, Client: client, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		Out: os.Stderr, ErrOut: os.Stderr,
	}, n, err
}

// listNodes prints a line for each node.
func listNodes(cmd *cobra.Command, t *target) error {
	client, err := t.localClient()
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return t.explain(err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return t.explain(err)
	}
	running := map[string]int{}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			running[pod.Spec.NodeName]++
		}
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATUS\tFAULT\tPODS\tLABELS")
	for i := range nodes.Items {
		n := &nodes.Items[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", n.Name, nodeStatus(n), cmp.Or(fault(n), "-"), running[n.Name], cmp.Or(ownLabels(n), "-"))
	}
	return table.Flush()
}

// nodeStatus is what Kubernetes says of a node.
func nodeStatus(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			known := map[corev1.ConditionStatus]string{corev1.ConditionTrue: "Ready", corev1.ConditionFalse: "NotReady"}
			return cmp.Or(known[c.Status], "Unknown")
		}
	}
	return "Unknown"
}

// fault is what was done to a node.
func fault(n *corev1.Node) string {
	var all []string
	if state := n.Annotations[cluster.NodeState]; state != "" {
		all = append(all, state)
	}
	if n.Spec.Unschedulable {
		all = append(all, "drained")
	}
	return strings.Join(all, ", ")
}

// ownLabels are those that not every node has.
func ownLabels(n *corev1.Node) string {
	var all []string
	for key, value := range n.Labels {
		common := strings.Contains(key, "kubernetes.io/os") || strings.Contains(key, "kubernetes.io/arch") || key == corev1.LabelHostname
		if !common && !strings.HasPrefix(key, "trainyard.dev/") {
			all = append(all, key+"="+value)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
