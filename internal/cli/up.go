//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/text"
)

// up is `trainyard up`: the local cluster in the foreground.
type up struct {
	dataDir         string
	kubeconfig      string
	withoutOperator bool
	// detach starts the cluster in the background, inBackground says that this is the process there.
	detach, inBackground bool
	nodes                nodeFlags
	out                  io.Writer
}

// OperatorAddon is the name of the operator among the addons of the local cluster.
const OperatorAddon = "operator"

// errClusterEnded says that the local cluster ended and nobody stopped it.
var errClusterEnded = errors.New("the local cluster ended by itself; cluster.log in the data directory says why")

// errClusterStopped says that the process which had started the local cluster stopped it.
var errClusterStopped = errors.New("the local cluster was stopped before the job ended; `trainyard up` starts it again")

func upCommand() *cobra.Command {
	var u up
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the local cluster and run it until Ctrl-C",
		Long: `Start a whole Kubernetes on this machine, in one process, and run it until Ctrl-C.

Pods run as processes of this machine: a container's image is ignored, and its command uses what is installed here.
Objects are kept in the data directory; the next "up" continues with them.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signals := make(chan os.Signal, 2)
			defer notifyStop(signals)()
			u.out = cmd.OutOrStdout()
			if u.inBackground {
				keepReadyFD()
			}
			if u.detach {
				return u.runDetached(cmd, signals)
			}
			return u.run(cmd.Context(), signals)
		},
	}
	addDataDir(cmd, &u.dataDir)
	cmd.Flags().StringVar(&u.kubeconfig, "kubeconfig", "", "a kubeconfig to add the cluster to, as its current context until the cluster stops (default: none but the data directory's own)")
	cmd.Flags().BoolVar(&u.withoutOperator, "without-operator", false, "start Kubernetes alone, without the operator for training jobs")
	addNodeFlags(cmd, &u.nodes)
	cmd.Flags().BoolVarP(&u.detach, "detach", "d", false, "run the cluster in the background and return when it is ready; down stops it")
	cmd.Flags().BoolVar(&u.inBackground, "in-background", false, "this process was started by --detach")
	_ = cmd.Flags().MarkHidden("in-background") // fails only for a flag that is not there
	return cmd
}

func (u *up) run(ctx context.Context, signals chan os.Signal) error {
	options := cluster.Options{DataDir: u.dataDir, Progress: progress(u.out), Waiting: func(pods []string, gracePeriod time.Duration) {
		fmt.Fprintln(u.out, waitingText(pods, gracePeriod))
	}}
	if err := u.nodes.apply(&options); err != nil {
		return err
	}
	if u.withoutOperator {
		options.Without = []string{OperatorAddon}
	}
	var err error
	if options.DataDir, err = dataDirOr(u.dataDir); err != nil {
		return err
	}
	shared, err := u.sharedKubeconfig(options.DataDir)
	if err != nil {
		return err
	}
	began := time.Now()
	starting, cancel := untilSignal(ctx, signals)
	defer cancel()
	c, err := cluster.Start(starting, options)
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped before the local cluster was ready")
	}
	if err != nil {
		return startError(err)
	}
	if err := u.writeKubeconfigs(c, shared); err != nil {
		return errors.Join(err, stopCluster(ctx, c, signals))
	}
	if shared != nil {
		defer func() {
			if err := shared.leave(); err != nil {
				fmt.Fprintf(u.out, "The current context of %s is still %s: %v\n", shared.file, shared.name, err)
			}
		}()
	}
	u.printReady(c, time.Since(began))
	if u.inBackground {
		sayReady()
	}
	cancel() // from here on signals stop the cluster
	select {
	case s := <-signals:
		if s == os.Interrupt {
			u.awaitRuns(c, signals)
		}
	case <-c.Done():
	}
	select {
	case <-c.Done():
		_ = c.Stop(ctx) // only cleans up
		return errClusterEnded
	default:
	}
	fmt.Fprintln(u.out, "\nStopping the local cluster …")
	err = stopCluster(ctx, c, signals)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(u.out, "Killed.")
		return outcome(exitInterrupted)
	case err == nil:
		fmt.Fprintln(u.out, "Stopped.")
	}
	return err
}

// runDetached starts the cluster in the background with the flags of this command.
func (u *up) runDetached(cmd *cobra.Command, signals chan os.Signal) error {
	dir, err := dataDirOr(u.dataDir)
	if err != nil {
		return err
	}
	if _, err := u.sharedKubeconfig(dir); err != nil {
		return err
	}
	ctx, cancel := untilSignal(cmd.Context(), signals)
	defer cancel()
	var flags []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if f.Name != "detach" && f.Name != "data-dir" {
				flags = append(flags, "--"+f.Name+"="+value)
			}
		}
	})
	pid, notes, err := startInBackground(ctx, dir, flags...)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(u.out, note)
	}
	fmt.Fprintf(u.out, "The local cluster is ready, as process %d. `trainyard status` shows it, `trainyard down` stops it.\n", pid)
	return nil
}

// sharedKubeconfig is the file of --kubeconfig, nil if it is not set or is the cluster's own.
func (u *up) sharedKubeconfig(dataDir string) (*sharedKubeconfig, error) {
	if u.kubeconfig == "" {
		return nil, nil
	}
	file, err := filepath.Abs(u.kubeconfig)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dataDir)
	if err != nil || file == filepath.Join(dir, "kubeconfig") {
		return nil, err
	}
	shared := &sharedKubeconfig{file, contextName(dir), dir}
	return shared, shared.check()
}

// writeKubeconfigs completes the cluster's own kubeconfig, by which `run` joins it, and merges it into the person's.
func (u *up) writeKubeconfigs(c *cluster.Cluster, shared *sharedKubeconfig) error {
	if u.withoutOperator {
		if err := markWithoutOperator(c.Kubeconfig()); err != nil {
			return err
		}
	}
	if shared == nil {
		return nil
	}
	u.kubeconfig = shared.file
	return shared.merge(c.Kubeconfig())
}

// printReady says that the cluster is ready, and how to use it.
func (u *up) printReady(c *cluster.Cluster, took time.Duration) {
	if isTerminal(u.out) {
		fmt.Fprint(u.out, "\r\033[K") // remove the last step
	}
	fmt.Fprintf(u.out, "The local cluster is ready (%.1f s).\n\n", took.Seconds())
	for _, note := range c.Notes() {
		fmt.Fprintf(u.out, "%s%s\n", notePrefix, note)
	}
	fmt.Fprintln(u.out, "Use it from another terminal:")
	if u.kubeconfig != clientcmd.RecommendedHomeFile || os.Getenv("KUBECONFIG") != "" { // else clients use it anyway
		fmt.Fprintf(u.out, "    export KUBECONFIG=%s\n", cmp.Or(u.kubeconfig, c.Kubeconfig()))
	}
	if !u.withoutOperator {
		fmt.Fprintln(u.out, "    trainyard run --nodes 2 -- python train.py")
	}
	fmt.Fprint(u.out, `    trainyard kubectl get pods --all-namespaces

Ctrl-C stops it; the next "trainyard up" continues where it stopped.
`)
}

// awaitRuns returns when no run of another process uses the cluster, or with a second signal.
func (u *up) awaitRuns(c *cluster.Cluster, signals <-chan os.Signal) {
	waiting, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-signals:
		case <-c.Done():
		case <-waiting.Done():
		}
	}()
	_ = c.AwaitGuests(waiting, func() {
		fmt.Fprintln(u.out, "\nA `trainyard run` still uses the local cluster, which stops when that ends. Ctrl-C again stops it now.")
	})
}

// stopCluster stops a cluster in order. One more Ctrl-C or SIGTERM kills it; the error is then context.Canceled. What `down` sends, and
// what is sent when a terminal is lost, kills nothing.
func stopCluster(ctx context.Context, c *cluster.Cluster, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case s := <-signals:
				if kills(s) {
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return c.Stop(ctx)
}

// waitingText says what a stop of the cluster waits for.
func waitingText(pods []string, gracePeriod time.Duration) string {
	const most = 5
	names := strings.Join(pods[:min(len(pods), most)], ", ")
	if more := len(pods) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("Waiting for %s to end, whose grace period is up to %s: %s. Ctrl-C kills them.", text.Count(len(pods), "pod", "pods"), story.Span(gracePeriod), names)
}

// progress prints what is being started: on a terminal in one line that is overwritten.
func progress(out io.Writer) func(string) {
	if isTerminal(out) {
		return func(step string) { fmt.Fprintf(out, "\r\033[KStarting the local cluster: %s …", step) }
	}
	return func(step string) { fmt.Fprintf(out, "Starting the local cluster: %s …\n", step) }
}
