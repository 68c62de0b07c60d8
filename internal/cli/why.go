package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

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
	s := storyOf(j, time.Now())
	s.TargetFlags = targetFlags(y, j)
	var err error
	if s.Pods, err = y.Pods(ctx, j); err != nil {
		return s, err
	}
	events, err := y.Events(ctx, j)
	if err != nil {
		return s, err
	}
	for _, e := range events {
		present := slices.ContainsFunc(s.Pods, func(p corev1.Pod) bool { return p.UID == e.UID })
		if e.Type == corev1.EventTypeWarning && present {
			s.Warnings = append(s.Warnings, fmt.Sprintf("pod %s: %s", e.Name, e.Text))
		}
	}
	return s, nil
}

// storyOf is a job's story from its object only. For a job that is recorded and had not ended, time stops with its record.
func storyOf(j *yard.Job, now time.Time) story.Story {
	if j.Recorded != nil && !j.Status.Finished() {
		now = j.Recorded.Updated
	}
	return story.Story{Job: j.Job, Status: j.Status, Created: j.Object.GetCreationTimestamp().Time, Now: now}
}
