package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/yard"
)

// deletion is `trainyard delete`: jobs by their names, by their labels, or all of a namespace.
type deletion struct {
	target
	selector    string
	all, noWait bool
}

func deleteCommand() *cobra.Command {
	var d deletion
	cmd := &cobra.Command{
		Use:     "delete JOB… | --all | -l SELECTOR",
		Aliases: []string{"cancel", "rm"},
		Short:   "Delete jobs with their pods, and wait until they are gone",
		Args:    d.checkArguments,
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}
	addTarget(cmd, &d.target)
	addSelector(cmd, &d.selector)
	cmd.Flags().BoolVar(&d.all, "all", false, "all jobs of the namespace")
	cmd.Flags().BoolVar(&d.noWait, "no-wait", false, "do not wait until the pods are gone")
	return cmd
}

func (d *deletion) checkArguments(cmd *cobra.Command, args []string) error {
	ways := 0
	for _, chosen := range []bool{len(args) > 0, d.all, d.selector != ""} {
		if chosen {
			ways++
		}
	}
	switch ways {
	case 0:
		return usageError{fmt.Errorf("no job is named: use `%[1]s JOB`, `%[1]s --all` or `%[1]s -l SELECTOR`", cmd.CommandPath())}
	case 1:
		return nil
	}
	return usageError{errors.New("names, --all and --selector are three ways to choose: use one")}
}

func (d *deletion) run(cmd *cobra.Command, names []string) error {
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	y, jobs, err := d.jobs(ctx, names)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are no such jobs in namespace %s.\n", y.Namespace)
		return nil
	}
	for _, j := range jobs { // all of them, before the first is waited for
		if err := y.Remove(ctx, j); err != nil {
			return d.explain(err)
		}
	}
	out, words := &printer{Writer: cmd.OutOrStdout()}, "is deleted"
	if d.noWait {
		words = "is being deleted"
	}
	for _, j := range jobs {
		if !d.noWait {
			if err := awaitGone(ctx, cmd.ErrOrStderr(), y, j); err != nil {
				return d.explain(err)
			}
		}
		out.printf("%s %s.\n", j.Job.Name, words)
	}
	return out.err
}

// jobs are the jobs to delete. If one of the names is wrong, none is deleted.
func (d *deletion) jobs(ctx context.Context, names []string) (*yard.Yard, []*yard.Job, error) {
	selector, err := parseSelector(d.selector)
	if err != nil {
		return nil, nil, err
	}
	y, err := d.open()
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		jobs, err := y.Jobs(ctx, y.Namespace, selector)
		return y, jobs, d.explain(err)
	}
	var jobs []*yard.Job
	for _, name := range names {
		_, j, err := d.find(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		jobs = append(jobs, j)
	}
	return y, jobs, nil
}

// awaitGone returns when a deleted job is gone. It prints what it waits for.
func awaitGone(ctx context.Context, out io.Writer, y *yard.Yard, j *yard.Job) error {
	for limit := 3 * time.Second; ; limit = time.Hour {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := y.AwaitGone(limited, j, contactTo(out))
		cancel()
		if ctx.Err() != nil {
			return outcome(exitInterrupted)
		}
		if !errors.Is(err, yard.ErrHeld) {
			return err
		}
		fmt.Fprintf(out, "%v.\n", err)
	}
}
