package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/yard"
)

// waiting is `trainyard wait`: it waits until a job has ended, or is in a state.
type waiting struct {
	target
	until   string
	timeout time.Duration
}

func waitCommand() *cobra.Command {
	var w waiting
	cmd := &cobra.Command{
		Use:   "wait JOB",
		Short: "Wait until a job has ended, and exit with its outcome",
		Long: `Wait until a job has ended, and exit with its outcome: 0 succeeded, 1 failed, 124 its deadline or --timeout passed.
With --for running, restarting or suspended it waits for that state instead.`,
		Args: oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error { return w.run(cmd, args[0]) },
	}
	addTarget(cmd, &w.target)
	cmd.Flags().StringVar(&w.until, "for", "end", "what to wait for: end, running, restarting, suspended, succeeded, failed")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "how long to wait at most (default: as long as it takes)")
	return cmd
}

func (w *waiting) run(cmd *cobra.Command, name string) error {
	w.until = strings.ToLower(w.until)
	if err := checkChoice("for", w.until, "end", "running", "restarting", "suspended", "succeeded", "failed"); err != nil {
		return err
	}
	if w.timeout < 0 {
		return usageError{fmt.Errorf("--timeout %s: use a positive time, as in 90s", w.timeout)}
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	y, j, err := w.find(ctx, name)
	if err != nil {
		return err
	}
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	changes, err := y.Follow(ctx, j, contactTo(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is still %s after %s.\n", j.Job.Name, strings.ToLower(storyOf(j, time.Now()).State()), w.timeout)
				return outcome(exitDeadline)
			}
			return outcome(exitInterrupted)
		case j = <-changes:
			if done, err := w.reached(j); done {
				if err == nil || errors.As(err, new(outcome)) {
					fmt.Fprintln(cmd.ErrOrStderr(), storyOf(j, time.Now()).Outcome())
				}
				return err
			}
		}
	}
}

// reached reports whether the wait is over, and with which error.
func (w *waiting) reached(j *yard.Job) (bool, error) {
	s := storyOf(j, time.Now())
	switch {
	case w.until != "end" && strings.EqualFold(s.State(), w.until) && (j.Status.Finished() || !j.Gone):
		return true, nil
	case s.EndReason() == job.ReasonDeadlineExceeded:
		return true, outcome(exitDeadline)
	case j.Status.Is(job.Failed):
		return true, outcome(exitFailed)
	case j.Status.Is(job.Succeeded) && w.until != "end":
		return true, fmt.Errorf("job %s has succeeded and will not be %s any more", j.Job.Name, w.until)
	case j.Status.Is(job.Succeeded):
		return true, nil
	case j.Gone:
		return true, fmt.Errorf("job %s was deleted before its end", j.Job.Name)
	}
	return false, nil
}
