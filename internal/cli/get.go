package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

// get is `trainyard get`: the jobs of a namespace.
type get struct {
	target
	all    bool
	output string
}

func getCommand() *cobra.Command {
	var g get
	cmd := &cobra.Command{
		Use:     "get [JOB]",
		Aliases: []string{"list", "ls", "ps"},
		Short:   "List jobs: state, replicas ready, attempt, retries, age",
		Args:    optionalArgument("job"),
		RunE:    func(cmd *cobra.Command, args []string) error { return g.run(cmd, args) },
	}
	addTarget(cmd, &g.target)
	cmd.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "the jobs of all namespaces")
	cmd.Flags().StringVarP(&g.output, "output", "o", "table", "table, yaml or json")
	return cmd
}

func (g *get) run(cmd *cobra.Command, args []string) error {
	if err := checkChoice("output", g.output, "table", "yaml", "json"); err != nil {
		return err
	}
	jobs, err := g.jobs(cmd, args)
	if err != nil {
		return err
	}
	if g.output != "table" {
		return printJobs(cmd, jobs, g.output)
	}
	if len(jobs) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are no jobs%s.\n", g.where())
		return nil
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	head, row := "", ""
	if g.all {
		head = "NAMESPACE\t"
	}
	fmt.Fprintf(table, "%sNAME\tKIND\tSTATE\tREADY\tATTEMPT\tRETRIES\tAGE\tMESSAGE\n", head)
	for _, j := range jobs {
		if g.all {
			row = j.Job.Namespace + "\t"
		}
		s := storyOf(j, time.Now())
		fmt.Fprintf(table, "%s%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", row, j.Job.Name, j.Kind.Name(), s.State(), j.Status.Ready, s.Attempt(), s.Retries(),
			story.Span(time.Since(s.Created)), cut(s.Message(), 70))
	}
	return table.Flush()
}

func (g *get) jobs(cmd *cobra.Command, args []string) ([]*yard.Job, error) {
	if len(args) == 1 {
		_, j, err := g.find(cmd.Context(), args[0])
		return []*yard.Job{j}, err
	}
	y, err := g.open()
	if err != nil {
		return nil, err
	}
	namespace := y.Namespace
	if g.all {
		namespace = ""
	}
	jobs, err := y.Jobs(cmd.Context(), namespace)
	return jobs, g.explain(err)
}

func (g *get) where() string {
	if g.all {
		return ""
	}
	return " in namespace " + g.namespace
}

func printJobs(cmd *cobra.Command, jobs []*yard.Job, format string) error {
	out := &printer{Writer: cmd.OutOrStdout()}
	var objects []runtime.Object
	for _, j := range jobs {
		j.Object.SetManagedFields(nil)
		j.Object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(j.Owner.GroupVersion().String(), j.Kind.Name()))
		objects = append(objects, j.Object)
	}
	if err := printWhole(out, objects, format); err != nil {
		return err
	}
	return out.err
}

// cut shortens a text to n runes.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
