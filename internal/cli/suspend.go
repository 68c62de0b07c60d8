package cli

import "github.com/spf13/cobra"

func suspendCommand() *cobra.Command {
	return suspendOrResume("suspend", "suspended", "suspended already", "Stop a job's pods and keep the job", true)
}

func resumeCommand() *cobra.Command {
	return suspendOrResume("resume", "resumed", "not suspended", "Let a suspended job run again", false)
}

func suspendOrResume(verb, done, before, short string, suspend bool) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   verb + " JOB",
		Short: short,
		Args:  oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			y, j, err := t.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			changed, err := y.Suspend(cmd.Context(), j, suspend)
			if err != nil {
				return t.explain(err)
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			switch {
			case !changed:
				done = before
			case j.Kueue != nil && suspend:
				done += ", and Kueue does not admit it"
			case j.Kueue != nil:
				done += ": Kueue starts it when the queue " + j.Kueue.Queue + " has room"
			}
			out.printf("%s is %s.\n", j.Job.Name, done)
			return out.err
		},
	}
	addTarget(cmd, &t)
	return cmd
}
