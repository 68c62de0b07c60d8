package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

func whyCommand() *cobra.Command {
	var t target
	var output string
	cmd := &cobra.Command{
		Use:     "why JOB",
		Aliases: []string{"describe"},
		Short:   "Say why a job is as it is, and what to do about it",
		Long: `Say in one paragraph what state a job is in and since when, what it waits for or what ended it, and what to do about it.
The scheduler, the image puller and the quota are quoted. After restarts it also lists the attempts.`,
		Args: oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkChoice("output", output, "text", "json"); err != nil {
				return err
			}
			y, j, err := t.look(cmd.Context(), cmd, args[0])
			if err != nil {
				return err
			}
			s, err := fullStory(cmd.Context(), y, j)
			if err != nil {
				return t.explain(err)
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			if output == "json" {
				return printExplanation(out, s, j)
			}
			out.printf("%s", s.Why())
			return out.err
		},
	}
	addTarget(cmd, &t)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// fullStory is a job's story with its pods and Kubernetes' warnings.
func fullStory(ctx context.Context, y *yard.Yard, j *yard.Job) (story.Story, error) {
	s, err := y.Story(ctx, j, time.Now())
	s.TargetFlags = targetFlags(y, j)
	return s, err
}

// storyOf is a job's story from its object only.
func storyOf(j *yard.Job, now time.Time) story.Story { return j.Brief(now) }
