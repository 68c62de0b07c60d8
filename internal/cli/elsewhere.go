//go:build !linux

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/internal/yard"
)

// The local cluster needs namespaces of Linux. Elsewhere the command line is a client of other clusters, and this file answers for what
// is missing.

// errNeedsLinux says what to do on a machine that cannot run the local cluster.
var errNeedsLinux = usageError{errors.New("the local cluster needs Linux: name another cluster with --context or --kubeconfig, or use a Linux machine, a virtual one or WSL")}

// cluster is the cluster that the flags name.
func (r *running) cluster(context.Context) (*rest.Config, func(*follower), error) {
	if err := r.checkFlags(); err != nil {
		return nil, nil, err
	}
	if !r.named() {
		return nil, nil, errNeedsLinux
	}
	config, err := r.config()
	return config, func(*follower) {}, err
}

func (*running) openInBackground(context.Context) (*yard.Yard, error) { return nil, errNeedsLinux }

func (*running) reportUnfinished(context.Context, *yard.Yard) {}

func (*running) reportUnusedGPUs(context.Context, *yard.Yard) {}

// localize changes nothing: the programs and directories of this machine are not those of the cluster, wherever it runs.
func localize(*unstructured.Unstructured) error { return nil }

// defaultDataDir is where a local cluster would be: there is none.
func defaultDataDir() (string, error) { return "", errNeedsLinux }

// clusterRuns is never true.
func clusterRuns(string) bool { return false }

func upCommand() *cobra.Command     { return missing("up", "Start the local cluster") }
func downCommand() *cobra.Command   { return missing("down", "Stop the local cluster") }
func statusCommand() *cobra.Command { return missing("status", "Say whether the local cluster runs") }
func nodeCommand() *cobra.Command   { return missing("node", "Make nodes of the local cluster fail") }
func pruneCommand() *cobra.Command {
	return missing("prune", "Delete finished jobs of the local cluster")
}

// missing is a verb of the local cluster.
func missing(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb, Short: fmt.Sprintf("%s (on Linux only)", short), DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return errNeedsLinux },
	}
}
