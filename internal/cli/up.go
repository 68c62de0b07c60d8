package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/cluster"
)

// up is `trainyard up`: the local cluster in the foreground.
type up struct {
	dataDir         string
	kubeconfig      string
	withoutOperator bool
	out             io.Writer
}

// OperatorAddon is the name of the operator among what runs in the local cluster's process.
const OperatorAddon = "operator"

// errDied says that nobody stopped the local cluster.
var errDied = errors.New("the local cluster ended by itself; cluster.log in the data directory says why")

// errStopped says that somebody stopped the local cluster that another process had started.
var errStopped = errors.New("the local cluster was stopped before the job ended; `trainyard up` starts it again")

// stopLimit is how long an orderly stop may take before all is killed.
const stopLimit = 30 * time.Second

func upCommand() *cobra.Command {
	var u up
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the local cluster and keep it until Ctrl-C",
		Long: `Start a whole Kubernetes on this machine, in one process, and keep it until Ctrl-C.

Pods run as processes of this machine: the image of a container is ignored, its command is run with what
is installed here. Objects are kept in the data directory; the next "up" continues with them.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			u.out = cmd.OutOrStdout()
			return u.run(ctx)
		},
	}
	cmd.Flags().StringVar(&u.dataDir, "data-dir", "", "directory that keeps the cluster (default ~/.local/share/trainyard)")
	cmd.Flags().StringVar(&u.kubeconfig, "kubeconfig", "", `file to write for clients (default "kubeconfig" in the data directory)`)
	cmd.Flags().BoolVar(&u.withoutOperator, "without-operator", false, "start Kubernetes alone, without the operator for training jobs")
	return cmd
}

func (u *up) run(ctx context.Context) error {
	options := cluster.Options{DataDir: u.dataDir, Kubeconfig: u.kubeconfig, Progress: progress(u.out)}
	if u.withoutOperator {
		options.Without = []string{OperatorAddon}
	}
	if options.DataDir == "" {
		dir, err := defaultDataDir()
		if err != nil {
			return err
		}
		options.DataDir = dir
	}
	began := time.Now()
	c, err := cluster.Start(ctx, options)
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped before the local cluster was ready")
	}
	if err != nil {
		return startError(err)
	}
	u.greet(c, time.Since(began))

	select {
	case <-ctx.Done():
	case <-c.Done():
		_ = u.stop(c) // nothing but what it left behind
		return errDied
	}
	fmt.Fprintln(u.out, "\nStopping the local cluster …")
	if err := u.stop(c); err != nil {
		return err
	}
	fmt.Fprintln(u.out, "Stopped.")
	return nil
}

// greet says that the cluster is ready, and how to use it.
func (u *up) greet(c *cluster.Cluster, took time.Duration) {
	if isTerminal(u.out) {
		fmt.Fprint(u.out, "\r\033[K") // over the last step
	}
	fmt.Fprintf(u.out, "The local cluster is ready (%.1f s).\n\n", took.Seconds())
	for _, note := range c.Notes() {
		fmt.Fprintf(u.out, "Note: %s\n", note)
	}
	fmt.Fprintf(u.out, "Use it from another terminal:\n    export KUBECONFIG=%s\n", c.Kubeconfig())
	if !u.withoutOperator {
		fmt.Fprintln(u.out, "    trainyard run --nodes 2 -- python train.py")
	}
	fmt.Fprint(u.out, `    trainyard kubectl get pods --all-namespaces

Ctrl-C stops it; the next "trainyard up" continues where it was.
`)
}

func (u *up) stop(c *cluster.Cluster) error {
	limited, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return c.Stop(limited)
}

// progress shows what is being started: on one line that is written over where that is possible.
func progress(out io.Writer) func(string) {
	if isTerminal(out) {
		return func(step string) { fmt.Fprintf(out, "\r\033[KStarting the local cluster: %s …", step) }
	}
	return func(step string) { fmt.Fprintf(out, "Starting the local cluster: %s …\n", step) }
}
