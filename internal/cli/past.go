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
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

// openPast connects to the target and to what was recorded of its jobs. A local cluster need not run.
func (t *target) openPast() (*yard.Yard, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	y, err := t.yard(config)
	if err != nil {
		return nil, err
	}
	if dir := t.localDir(config); dir != "" {
		if past := record.Of(dir); past.Exists() {
			y.Past, y.Stopped = past, !clusterRuns(dir)
		}
	}
	return y, nil
}

// localDir is the data directory of the local cluster that a configuration is about, empty for other clusters.
func (t *target) localDir(config *rest.Config) string {
	if !t.local {
		return ""
	}
	candidates := []string{t.dataDir}
	for _, file := range []string{t.kubeconfig, os.Getenv("KUBECONFIG")} {
		if file != "" {
			candidates = append(candidates, filepath.Dir(file))
		}
	}
	if dir, err := defaultDataDir(); err == nil {
		candidates = append(candidates, dir)
	}
	at := slices.IndexFunc(candidates, func(dir string) bool {
		own, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
		return dir != "" && err == nil && own.Host == config.Host
	})
	if at < 0 {
		return ""
	}
	return candidates[at]
}

// look is the job with a name, also if it is deleted or its local cluster is not running. A line says so.
func (t *target) look(ctx context.Context, cmd *cobra.Command, name string) (*yard.Yard, *yard.Job, error) {
	y, err := t.openPast()
	if err != nil {
		return nil, nil, err
	}
	j, err := y.Look(ctx, name)
	if hasEnded(y, err) {
		y.Stopped = true
		j, err = y.Look(ctx, name)
	}
	switch {
	case errors.Is(err, yard.ErrNotFound) && y.Past != nil:
		return nil, nil, fmt.Errorf("%w: `trainyard history` lists the jobs, also deleted ones", err)
	case errors.Is(err, yard.ErrNotFound):
		return nil, nil, fmt.Errorf("%w: `trainyard get` lists the jobs", err)
	case err != nil:
		return nil, nil, t.explain(err)
	}
	if j.Recorded != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), recordedWords(y, j))
	}
	return y, j, nil
}

// hasEnded reports whether the cluster of a record does not answer. Its data directory may stay locked for a moment after it was killed.
func hasEnded(y *yard.Yard, err error) bool { return y.Past != nil && utilnet.IsConnectionRefused(err) }

// recordedWords says that a job comes from the record, and why.
func recordedWords(y *yard.Yard, j *yard.Job) string {
	s := j.Recorded.Summary
	switch {
	case s.Unseen:
		return fmt.Sprintf("%s was deleted while nothing was recorded. This is what is known of it.", s.Name)
	case !s.Deleted.IsZero():
		return fmt.Sprintf("%s was deleted %s ago. This is what was recorded.", s.Name, story.Span(time.Since(s.Deleted)))
	}
	if !y.Stopped {
		return fmt.Sprintf("%s was deleted a moment ago. This is what was recorded.", s.Name)
	}
	return "The local cluster is not running. This is what was recorded."
}
