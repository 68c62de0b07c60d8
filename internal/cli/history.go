package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/story"
)

// history is `trainyard history`: the jobs that were recorded.
type history struct {
	target
	all    bool
	limit  int
	output string
}

func historyCommand() *cobra.Command {
	var h history
	cmd := &cobra.Command{
		Use:   "history [JOB]",
		Short: "List past jobs: how they ended, and how long they took",
		Long: `List the jobs of the local cluster that were recorded, the newest first, also those that are deleted. The cluster need
not run. logs, why and events show a job by its name, or an older one of the same name by the letters in column ID.`,
		Args: optionalArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error { return h.run(cmd, args) },
	}
	addTarget(cmd, &h.target)
	cmd.Flags().BoolVarP(&h.all, "all-namespaces", "A", false, "the jobs of all namespaces")
	cmd.Flags().IntVar(&h.limit, "limit", 20, "how many jobs are listed, 0 for all")
	cmd.Flags().StringVarP(&h.output, "output", "o", "table", "table or json")
	return cmd
}

func (h *history) run(cmd *cobra.Command, args []string) error {
	if err := checkChoice("output", h.output, "table", "json"); err != nil {
		return err
	}
	if h.limit < 0 {
		return usageError{fmt.Errorf("--limit %d: use 0 or more", h.limit)}
	}
	y, err := h.openPast()
	if err != nil {
		return err
	}
	if y.Past == nil && !h.local {
		return fmt.Errorf("this command reads the records of local clusters only: `trainyard get` lists the jobs that this cluster has, and its dashboard shows what its recorder has")
	}
	namespace := y.Namespace
	if h.all {
		namespace = ""
	}
	jobs, err := y.PastJobs(namespace)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		jobs = slices.DeleteFunc(jobs, func(s record.Summary) bool { return s.Name != args[0] })
	}
	if h.output == "json" {
		return h.printJSON(cmd, jobs)
	}
	if len(jobs) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "There are no recorded jobs.")
		return nil
	}
	return h.printTable(cmd, jobs, !y.Stopped)
}

// limited are the jobs to list.
func (h *history) limited(jobs []record.Summary) []record.Summary {
	if h.limit > 0 && len(jobs) > h.limit {
		return jobs[:h.limit]
	}
	return jobs
}

func (h *history) printJSON(cmd *cobra.Command, jobs []record.Summary) error {
	out := &printer{Writer: cmd.OutOrStdout()}
	for _, s := range h.limited(jobs) {
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		out.printf("%s\n", line)
	}
	return out.err
}

func (h *history) printTable(cmd *cobra.Command, jobs []record.Summary, running bool) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	columns := func(cells ...string) {
		if !h.all {
			cells = cells[1:]
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	columns("NAMESPACE", "NAME", "ID", "KIND", "OUTCOME", "REPLICAS", "ATTEMPTS", "AGE", "DURATION", "MESSAGE")
	for _, s := range h.limited(jobs) {
		columns(s.Namespace, s.Name, cut8(string(s.UID)), s.Kind, s.Outcome(running), fmt.Sprint(s.Replicas), fmt.Sprint(s.Attempts),
			story.Span(time.Since(s.Created)), durationOf(s, running), cut(s.Message, 70))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more := len(jobs) - len(h.limited(jobs)); more > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are %d more: --limit 0 lists all.\n", more)
	}
	return nil
}

func cut8(uid string) string { return uid[:min(8, len(uid))] }

// durationOf is how long a job ran.
func durationOf(s record.Summary, running bool) string {
	if d, ok := s.Duration(running, time.Now()); ok {
		return story.Span(d)
	}
	return ""
}
