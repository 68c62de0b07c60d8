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

func deleteCommand() *cobra.Command {
	var t target
	var now bool
	cmd := &cobra.Command{
		Use:     "delete JOB",
		Aliases: []string{"cancel", "rm"},
		Short:   "Delete a job with its pods, and wait until they are gone",
		Args:    oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			y, j, err := t.find(ctx, args[0])
			if err != nil {
				return err
			}
			if err := deleteJob(ctx, cmd.ErrOrStderr(), y, j, !now); err != nil {
				return t.explain(err)
			}
			out, words := &printer{Writer: cmd.OutOrStdout()}, "is deleted"
			if now {
				words = "is being deleted"
			}
			out.printf("%s %s.\n", j.Job.Name, words)
			return out.err
		},
	}
	addTarget(cmd, &t)
	cmd.Flags().BoolVar(&now, "no-wait", false, "do not wait until the pods are gone")
	return cmd
}

// deleteJob deletes a job. If it shall wait until the job is gone, it prints what it waits for.
func deleteJob(ctx context.Context, out io.Writer, y *yard.Yard, j *yard.Job, await bool) error {
	if err := y.Remove(ctx, j); err != nil || !await {
		return err
	}
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
