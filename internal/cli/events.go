package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/story"
)

func eventsCommand() *cobra.Command {
	var t target
	var all bool
	cmd := &cobra.Command{
		Use:   "events JOB",
		Short: "Tell what happened to a job and its pods, in the order of time",
		Args:  oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			y, j, err := t.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			events, err := y.Events(cmd.Context(), j)
			if err != nil {
				return t.explain(err)
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			began := j.Object.GetCreationTimestamp().Time
			for _, e := range events {
				if !all && e.Kind == "Pod" && e.Type == "Normal" && (e.Reason == "Pulling" || e.Reason == "Pulled" || e.Reason == "Created") {
					continue
				}
				mark := " "
				if e.Type == "Warning" {
					mark = "!"
				}
				who := strings.TrimPrefix(e.Name, j.Job.Name+"-")
				text := strings.TrimPrefix(e.Text, j.Kind.Name()+" "+j.Job.Name+" ")
				out.printf("%9s %s %-*s  %s\n", "+"+story.Span(e.Time.Sub(began)), mark, max(12, len(j.Job.Name)), who, strings.ReplaceAll(text, "\n", " "))
			}
			if len(events) == 0 {
				out.printf("Nothing is noted about %s. Clusters keep events for an hour.\n", j.Job.Name)
			}
			return out.err
		},
	}
	addTarget(cmd, &t)
	cmd.Flags().BoolVar(&all, "all", false, "also the pods' ordinary steps: pulling and creating")
	return cmd
}
