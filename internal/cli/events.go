package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

func eventsCommand() *cobra.Command {
	var t target
	var all bool
	cmd := &cobra.Command{
		Use:   "events JOB",
		Short: "List what happened to a job and its pods, in the order of time",
		Args:  oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			y, j, err := t.look(cmd.Context(), cmd, args[0])
			if err != nil {
				return err
			}
			events, err := y.Events(cmd.Context(), j)
			if err != nil {
				return t.explain(err)
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			for _, e := range events {
				if all || !isRoutine(e) {
					out.printf("%s\n", eventLine(j, e))
				}
			}
			if len(events) == 0 {
				out.printf("There are no events of %s. Clusters keep events for an hour.\n", j.Job.Name)
			}
			return out.err
		},
	}
	addTarget(cmd, &t)
	cmd.Flags().BoolVar(&all, "all", false, "also list the routine steps of pods: pulling images and creating containers")
	return cmd
}

// isRoutine reports whether an event is a step that every pod takes.
func isRoutine(e yard.Event) bool {
	return e.Kind == "Pod" && e.Type == corev1.EventTypeNormal && (e.Reason == "Pulling" || e.Reason == "Pulled" || e.Reason == "Created")
}

// eventLine is an event in one line. Many events have whole seconds only, so all are shown so: truncated, because rounded times
// could appear to go back.
func eventLine(j *yard.Job, e yard.Event) string {
	began := j.Object.GetCreationTimestamp().Time
	after := func(t time.Time) string { return "+" + story.Span(t.Truncate(time.Second).Sub(began)) }
	mark := " "
	if e.Type == corev1.EventTypeWarning {
		mark = "!"
	}
	who := strings.TrimPrefix(e.Name, j.Job.Name+"-")
	if e.Kind == "HorizontalPodAutoscaler" {
		who = "autoscaler"
	}
	text := strings.ReplaceAll(strings.TrimPrefix(e.Text, j.Kind.Name()+" "+j.Job.Name+" "), "\n", " ")
	if e.Times > 1 {
		text += fmt.Sprintf(" (%d times since %s)", e.Times, after(e.First))
	}
	return fmt.Sprintf("%9s %s %-*s  %s", after(e.Time), mark, max(12, len(j.Job.Name)), who, text)
}
