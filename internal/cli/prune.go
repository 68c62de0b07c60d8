//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/text"
	"github.com/trainyard/trainyard/internal/yard"
)

// pruning is `trainyard prune`: it removes what a local cluster keeps and nobody needs.
type pruning struct {
	dataDir   string
	olderThan time.Duration
	all       bool
}

func pruneCommand() *cobra.Command {
	var p pruning
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete finished jobs of the local cluster, with their pods and logs",
		Long: `Delete the jobs of the local cluster that ended some time ago, with their pods and logs. The cluster must be running. With
--all, the cluster must not be running, and everything that it keeps is deleted.`,
		Example: `  trainyard prune --older-than 1h
  trainyard down && trainyard prune --all`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	addDataDir(cmd, &p.dataDir)
	cmd.Flags().DurationVar(&p.olderThan, "older-than", 24*time.Hour, "how long ago a job must have ended")
	cmd.Flags().BoolVar(&p.all, "all", false, "delete everything that a local cluster which is not running keeps: jobs, logs, certificates")
	return cmd
}

func (p *pruning) run(cmd *cobra.Command) error {
	dir, err := dataDirOr(p.dataDir)
	if err != nil {
		return err
	}
	if p.olderThan < 0 {
		return usageError{fmt.Errorf("--older-than %s: use a time, as in 1h", p.olderThan)}
	}
	if holder, held := cluster.HolderOf(dir); held && !holder.Here() {
		return holder.ElsewhereError(dir)
	}
	if p.all {
		return p.removeAll(cmd, dir)
	}
	if !clusterRuns(dir) {
		return errors.New("the local cluster is not running: `trainyard up -d` starts it, to delete finished jobs; --all deletes everything")
	}
	access, err := currentAccess(dir)
	if err != nil {
		return err
	}
	y, err := yard.Open(access, "")
	if err != nil {
		return err
	}
	ctx, cancel := untilInterrupted(cmd.Context())
	defer cancel()
	return p.deleteFinished(ctx, cmd, y, time.Now())
}

// deleteFinished deletes the jobs that ended early enough.
func (p *pruning) deleteFinished(ctx context.Context, cmd *cobra.Command, y *yard.Yard, now time.Time) error {
	jobs, err := y.Jobs(ctx, "")
	if err != nil {
		return fmt.Errorf("listing the jobs of the local cluster: %w", err)
	}
	out, deleted := &printer{Writer: cmd.OutOrStdout()}, 0
	for _, j := range jobs {
		ago := max(0, now.Sub(j.Status.CompletionTime)) // stored times are whole seconds, and may be some way ahead
		if !j.Status.Finished() || j.Job.Deleting || ago < p.olderThan {
			continue
		}
		if err := y.Remove(ctx, j); err != nil {
			return fmt.Errorf("deleting %s: %w", j.Job.Name, err)
		}
		out.printf("%s/%s is deleted.\n", j.Job.Namespace, j.Job.Name)
		deleted++
	}
	out.printf("%s deleted.\n", text.Count(deleted, "finished job", "finished jobs"))
	return out.err
}

// removeAll removes what a cluster keeps in its data directory. Nobody can start one there meanwhile. Other files stay.
func (p *pruning) removeAll(cmd *cobra.Command, dir string) error {
	release, err := cluster.Lock(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no local cluster in %s", dir)
	case errors.Is(err, cluster.ErrRunning):
		return errors.New("the local cluster is running: `trainyard down` stops it")
	case err != nil:
		return err
	}
	defer release()
	size := diskUsage(dir)
	for _, pattern := range append(cluster.Files(), upLog, record.Dir) {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("deleting what the local cluster keeps: %w", err)
			}
		}
	}
	left := diskUsage(dir)
	_ = os.Remove(dir) // if nothing else is there
	out := &printer{Writer: cmd.OutOrStdout()}
	out.printf("%s deleted.\n", sizeText(size-left))
	return out.err
}
