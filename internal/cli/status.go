//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

func statusCommand() *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether the local cluster runs, and what it keeps",
		Long:  `Say whether the local cluster runs, since when, where it is kept, and which jobs it has. The exit code is 1 if it does not run.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("status is about the local cluster: `trainyard get %[1]s` shows the job, `trainyard why %[1]s` explains it", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dataDirOr(dataDir)
			if err != nil {
				return err
			}
			return status(cmd, dir)
		},
	}
	addDataDir(cmd, &dataDir)
	return cmd
}

func status(cmd *cobra.Command, dir string) error {
	out := &printer{Writer: cmd.OutOrStdout()}
	holder, held := cluster.HolderOf(dir)
	if held && !holder.Here() {
		return holder.ElsewhereError(dir)
	}
	if !held {
		out.printf("The local cluster is not running: `trainyard up` starts it.\n")
		if diskUsage(dir) > 0 {
			out.printf("  data        %s\n", dataText(dir))
		}
		return cmp.Or(out.err, error(outcome(exitFailed)))
	}
	lock, err := os.Stat(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	access, err := currentAccess(dir)
	if err != nil && !errors.Is(err, errNoOperator) {
		out.printf("The local cluster is starting.\n")
		return out.err
	}
	out.printf("The local cluster has been running for %s.\n", story.Span(time.Since(lock.ModTime())))
	out.printf("  process     %d\n  data        %s\n  kubeconfig  %s\n", holder.PID, dataText(dir), filepath.Join(dir, "kubeconfig"))
	if err != nil {
		out.printf("  operator    none\n")
		return out.err
	}
	y, err := yard.Open(access, "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), requestTimeout)
	defer cancel()
	jobs, err := y.Jobs(ctx, "")
	if err != nil {
		return fmt.Errorf("listing the jobs of the local cluster: %w", err)
	}
	out.printf("  jobs        %s\n", countStates(jobs))
	return out.err
}

// countStates says how many jobs are in which state.
func countStates(jobs []*yard.Job) string {
	counts := map[string]int{}
	for _, j := range jobs {
		counts[strings.ToLower(storyOf(j, time.Now()).State())]++
	}
	var parts []string
	for state, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// dataText says where a cluster is kept, and how large its parts are.
func dataText(dir string) string {
	logs := int64(0)
	for _, pattern := range []string{"kubelet/logs", "nodes/*/kubelet/logs", "*.log*", "nodes/*/*.log*"} {
		found, _ := filepath.Glob(filepath.Join(record.EscapeGlob(dir), pattern))
		for _, path := range found {
			logs += diskUsage(path)
		}
	}
	return fmt.Sprintf("%s, %s (store %s, logs %s, records %s)", dir, sizeText(diskUsage(dir)), sizeText(diskUsage(filepath.Join(dir, "etcd"))),
		sizeText(logs), sizeText(record.Of(dir).Size()))
}

// diskUsage is the size of all files below a directory, as far as they can be read.
func diskUsage(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}
