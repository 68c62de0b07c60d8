package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trainyard/trainyard/internal/kinds"
)

// running is `trainyard run`: it submits a job and follows it to its end.
type running struct {
	target
	recipe
	file, output, onInterrupt string
	dryRun, detach            bool
	screen                    *screen
	// command is what to run, if there is no file.
	command []string
	// dir is the data directory of the local cluster.
	dir string
	// own says that this run started the local cluster, at the time began. Otherwise it has joined another.
	own   bool
	began time.Time
	// clusterDone is closed when the local cluster has ended. clusterErr is then the error.
	clusterDone <-chan struct{}
	clusterErr  error
}

func runCommand() *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "run [-f job.yaml | flags -- command …]",
		Short: "Run a training job and follow it to its end",
		Long: `Run a training job and follow it to its end: all replicas' logs, restarts and their cause, and a summary.

It runs on the local cluster of this machine, or on the cluster that --context or --kubeconfig name. If the local
cluster is not up, it is started for this run. The exit code is the job's: 0 succeeded, 1 failed, 124 deadline passed;
2 means wrong usage. Ctrl-C stops the job gracefully (exit code 130), and a second Ctrl-C kills it. On a cluster that
is not local, Ctrl-C leaves the job running: attach follows it again, delete stops it.`,
		Example: `  trainyard run -- python train.py --epochs 3
  trainyard run --nodes 2 --retries 3 --deadline 2h -- python train.py
  trainyard run --nodes 1:4 -- torchrun train.py
  trainyard run --mpi --nodes 2 --nproc 4 -- ./a.out
  trainyard run -f job.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	addFile(cmd, &r.file, "the manifest")
	addCluster(cmd, &r.target, "the kubeconfig of another cluster (default: the local cluster)")
	addDataDir(cmd, &r.dataDir)
	addNamespace(cmd, &r.target)
	flags := cmd.Flags()
	flags.AddFlagSet(r.flags())
	flags.SetNormalizeFunc(otherNames)
	flags.StringVarP(&r.output, "output", "o", "text", "text, or json: one line for each event")
	flags.StringVar(&r.onInterrupt, "on-interrupt", "", "what Ctrl-C does: delete the job, or detach from it (default: delete on the local cluster, detach on another)")
	flags.BoolVarP(&r.detach, "detach", "d", false, "return when the job is submitted; a local cluster that is not up is started in the background")
	flags.BoolVar(&r.dryRun, "dry-run", false, "print the manifest and do nothing")
	return cmd
}

func (r *running) run(cmd *cobra.Command, command []string) error {
	if err := checkChoice("output", r.output, "text", "json"); err != nil {
		return err
	}
	if r.onInterrupt != "" {
		if err := checkChoice("on-interrupt", r.onInterrupt, "delete", "detach"); err != nil {
			return err
		}
	}
	objects, kind, err := r.objects(cmd, command)
	if err != nil {
		return err
	}
	if err := r.checkCommand(command, !r.named()); err != nil {
		return err
	}
	if r.dryRun {
		return printAll(cmd, objects)
	}
	signals := make(chan os.Signal, 2)
	defer notifyStop(signals)()
	r.screen = newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr())
	if r.output == "json" {
		r.screen.width = 0 // no live line
	}

	starting, cancel := untilSignal(cmd.Context(), signals)
	defer cancel()
	if r.detach {
		return r.runDetached(starting, cmd, kind, objects)
	}
	config, release, err := r.cluster(starting)
	if err != nil {
		return err
	}
	f := r.follower(signals)
	defer func() { release(f) }()
	y, err := r.yard(config)
	if err != nil {
		return err
	}
	r.reportUnfinished(starting, y)
	job, err := r.submit(starting, y, kind, objects)
	if starting.Err() != nil && job == nil {
		return outcome(exitInterrupted)
	}
	if err != nil {
		return r.explain(err)
	}
	cancel() // from here on the follower handles signals
	f.yard = y
	return f.follow(context.WithoutCancel(cmd.Context()), job)
}

// follower follows the job of this run. Without --on-interrupt, Ctrl-C deletes a job of the local cluster only, and SIGTERM none.
func (r *running) follower(signals <-chan os.Signal) *follower {
	return &follower{
		screen: r.screen, json: r.output == "json", signals: signals, clusterDone: r.clusterDone, clusterErr: r.clusterErr, own: r.own,
		detaches: r.onInterrupt == "detach" || r.onInterrupt == "" && !r.local, keeps: r.onInterrupt != "delete",
	}
}

// checkCommand refuses a command that the cluster cannot run: a local one needs the program, any other an image.
func (r *running) checkCommand(command []string, local bool) error {
	switch {
	case r.file != "":
		return nil
	case !local && r.image == "":
		return usageError{errors.New("a cluster needs an image to run the command in: name one with --image")}
	case local && !r.dryRun:
		return cmp.Or(r.checkMPI(command), r.checkProgram(command[0]), r.checkScript(command))
	}
	return nil
}

// objects are the objects to submit, the job last, and the job's kind.
func (r *running) objects(cmd *cobra.Command, command []string) ([]*unstructured.Unstructured, kinds.Adapter, error) {
	r.command = command
	switch {
	case r.file == "" && len(command) == 0:
		return nil, nil, usageError{fmt.Errorf("nothing to run: use `%[1]s -- python train.py` or `%[1]s -f job.yaml`", cmd.CommandPath())}
	case r.file != "" && len(command) > 0:
		return nil, nil, usageError{errors.New("a manifest and a command are two jobs: leave out -f or the command")}
	case r.file == "":
		job, err := r.job(command)
		if err != nil {
			return nil, nil, err
		}
		return []*unstructured.Unstructured{job}, kinds.Of(job.GroupVersionKind()), checkJob(cmd.Context(), job)
	}
	if flag := r.firstSet(cmd); flag != "" {
		return nil, nil, usageError{fmt.Errorf("--%s needs a command: with -f set it in the manifest", flag)}
	}
	return objectsOf(cmd, r.file)
}

// objectsOf are the objects of a file that has one job, the job last.
func objectsOf(cmd *cobra.Command, file string) ([]*unstructured.Unstructured, kinds.Adapter, error) {
	docs, err := readFile(cmd, file)
	if err != nil {
		return nil, nil, err
	}
	job, err := onlyJob(cmd, file, docs)
	if err != nil {
		return nil, nil, err
	}
	var objects []*unstructured.Unstructured
	for _, doc := range docs {
		if doc != job.Document {
			objects = append(objects, doc.Object)
		}
	}
	return append(objects, job.Object), job.kind, nil
}
