package cli

import (
	"fmt"

	"github.com/spf13/cobra"

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
