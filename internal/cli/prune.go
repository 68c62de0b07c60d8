//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

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
		Short: "Delete finished jobs of the local cluster, with their pods, logs and records",
		Long: `Delete the jobs of the local cluster that ended some time ago, with their pods and logs, and what was recorded of such jobs, also
of deleted ones: they leave the history. The cluster must be running. With --all, the cluster must not be running, and everything that it
keeps is deleted.`,
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
	out := &printer{Writer: cmd.OutOrStdout()}
	deleted, err := p.deleteFinished(ctx, out, y, time.Now())
	if err != nil {
		return err
	}
	return p.deleteRecords(ctx, out, record.Of(dir), deleted)
}

// deleteFinished deletes the jobs that ended early enough.
func (p *pruning) deleteFinished(ctx context.Context, out *printer, y *yard.Yard, now time.Time) (deleted []types.UID, _ error) {
	jobs, err := y.Jobs(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing the jobs of the local cluster: %w", err)
	}
	for _, j := range jobs {
		ago := max(0, now.Sub(j.Status.CompletionTime)) // stored times are whole seconds, and may be some way ahead
		if !j.Status.Finished() || j.Job.Deleting || ago < p.olderThan {
			continue
		}
		if err := y.Remove(ctx, j); err != nil {
			return nil, fmt.Errorf("deleting %s: %w", j.Job.Name, err)
		}
		out.printf("%s/%s is deleted.\n", j.Job.Namespace, j.Job.Name)
		deleted = append(deleted, j.Job.UID)
	}
	out.printf("%s deleted.\n", text.Count(len(deleted), "finished job", "finished jobs"))
	return deleted, out.err
}

// recordWait is how long prune waits until the recorder has recorded the deletion of a job. It writes once a second.
const recordWait = 15 * time.Second

// deleteRecords deletes the records of jobs that ended early enough. The recorder would write a record again if it were deleted before
// it is complete.
func (p *pruning) deleteRecords(ctx context.Context, out *printer, store *record.Store, deleted []types.UID) error {
	if !store.Exists() {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, recordWait, true, func(context.Context) (bool, error) {
		jobs, err := store.Summaries()
		return err == nil && !slices.ContainsFunc(jobs, func(s record.Summary) bool {
			return slices.Contains(deleted, s.UID) && (s.Deleted.IsZero() || !s.Complete)
		}), err
	})
	if ctx.Err() != nil {
		return outcome(exitInterrupted)
	}
	if wait.Interrupted(err) {
		return fmt.Errorf("the deleted jobs have not ended after %s, and their records stay: run prune again later", recordWait)
	}
	if err != nil {
		return err
	}
	limits := store.Limits
	limits.Age = p.olderThan
	done, err := store.Prune(limits, time.Now())
	if err != nil {
		return err
	}
	if done.Jobs > 0 {
		out.printf("%s deleted (%s).\n", text.Count(done.Jobs, "record", "records"), sizeText(done.Bytes))
	}
	for _, why := range done.Unreadable {
		out.printf("A job stays in the records: %v. Delete its folder if you do not need it.\n", why)
	}
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
		found, err := filepath.Glob(filepath.Join(record.EscapeGlob(dir), pattern))
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
