//go:build linux

package cli

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trainyard/trainyard/internal/cluster"
)

func downCommand() *cobra.Command {
	var dataDir string
	var force bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the local cluster, and keep its jobs for the next up",
		Long: `Stop the local cluster, and wait until it has ended. Running pods get SIGTERM. Jobs stay in the data directory, and go
on with the next "up". If a "trainyard run" uses the cluster, down stops it only with --force.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dataDirOr(dataDir)
			if err != nil {
				return err
			}
			return down(cmd, dir, force)
		},
	}
	addDataDir(cmd, &dataDir)
	cmd.Flags().BoolVar(&force, "force", false, "stop it even if a run uses it")
	return cmd
}

func down(cmd *cobra.Command, dir string, force bool) error {
	out := &printer{Writer: cmd.OutOrStdout()}
	holder, held := cluster.HolderOf(dir)
	pid := holder.PID
	switch {
	case held && !holder.Here():
		return holder.ElsewhereError(dir)
	case pid == 0 && held:
		return fmt.Errorf("the process that runs the local cluster of %s is not known", dir)
	case pid == 0:
		out.printf("The local cluster is not running.\n")
		return out.err
	case !force && (isRun(pid) || cluster.HasGuests(dir)):
		return fmt.Errorf("a `trainyard run` uses the local cluster: wait for it, or stop it with `trainyard down --force`")
	}
	if err := syscall.Kill(pid, endCluster); err != nil {
		return fmt.Errorf("stopping process %d, which runs the local cluster: %w", pid, err)
	}
	ctx, cancel := untilInterrupted(cmd.Context())
	defer cancel()
	sayWaiting := sync.OnceFunc(func() {
		out.printf("Waiting for running pods to end, within their grace periods. `kill %d` kills them.\n", pid)
	})
	began := time.Now()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		if time.Since(began) > 2*time.Second {
			sayWaiting()
		}
		return !clusterRuns(dir), nil
	})
	if err != nil {
		return fmt.Errorf("the local cluster, process %d, is still stopping", pid)
	}
	out.printf("Stopped.\n")
	return out.err
}

// dataDirOr is a data directory, or else the default one.
func dataDirOr(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	return defaultDataDir()
}
