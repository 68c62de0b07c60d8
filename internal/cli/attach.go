package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"
)

func attachCommand() *cobra.Command {
	var t target
	var output string
	cmd := &cobra.Command{
		Use:   "attach JOB",
		Short: "Follow a job that was submitted before to its end, as run does",
		Long: `Follow a job that was submitted before to its end, as run does: logs, restarts and their cause, and a summary. The exit
code is the job's. Ctrl-C ends attach, and the job keeps running.`,
		Args: oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error { return attach(cmd, &t, args[0], output) },
	}
	addTarget(cmd, &t)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, or json: one line for each event")
	return cmd
}

func attach(cmd *cobra.Command, t *target, name, output string) error {
	if err := checkChoice("output", output, "text", "json"); err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	defer notifyStop(signals)()
	ctx, cancel := untilSignal(cmd.Context(), signals)
	defer cancel()
	y, j, err := t.find(ctx, name)
	if ctx.Err() != nil {
		return outcome(exitInterrupted)
	}
	if err != nil {
		return err
	}
	cancel() // from here on the follower handles signals
	f := &follower{yard: y, screen: newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr()), json: output == "json", signals: signals, detaches: true, keeps: true, attached: true}
	if f.json {
		f.screen.width = 0 // no live line
	}
	return t.explain(f.follow(context.WithoutCancel(cmd.Context()), j))
}
