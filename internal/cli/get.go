package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

// get is `trainyard get`: the jobs of a namespace.
type get struct {
	target
	all, watch, history bool
	selector, output    string
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
	cmd.Flags().BoolVar(&g.history, "history", false, "also jobs that are deleted, as they were recorded")
	cmd.Flags().StringVarP(&g.output, "output", "o", "table", "table, wide, name, yaml or json")
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "print a job again each time it changes, until Ctrl-C")
	addSelector(cmd, &g.selector)
	return cmd
}

func (g *get) run(cmd *cobra.Command, args []string) error {
	if err := checkChoice("output", g.output, "table", "wide", "name", "yaml", "json"); err != nil {
		return err
	}
	if g.watch && g.history {
		return usageError{errors.New("--watch shows what changes, and --history what is over: leave out one")}
	}
	if g.watch {
		return g.follow(cmd, args)
	}
	jobs, err := g.jobs(cmd, args)
	if err != nil {
		return err
	}
	switch g.output {
	case "yaml", "json":
		return printJobs(cmd, jobs, g.output)
	case "name":
		return printNames(cmd, jobs)
	}
	if len(jobs) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are no jobs%s.\n", g.where())
		return nil
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, strings.Join(g.header(), "\t"))
	for _, j := range jobs {
		fmt.Fprintln(table, strings.Join(g.row(j), "\t"))
	}
	return table.Flush()
}

func (g *get) header() []string {
	return g.columns("NAMESPACE", "NAME", "KIND", "STATE", "READY", "ATTEMPT", "RETRIES", "DISRUPTIONS", "AGE", "MESSAGE")
}

func (g *get) row(j *yard.Job) []string {
	s := storyOf(j, time.Now())
	state, message := s.State(), s.Message()
	if j.Gone && !(j.Recorded != nil && j.Status.Finished()) {
		state, message = "Deleted", ""
	}
	if g.output != "wide" {
		message = cut(message, 70)
	}
	return g.columns(j.Job.Namespace, j.Job.Name, j.Kind.Name(), state, j.Status.Ready, fmt.Sprint(s.Attempt()), s.Retries(),
		fmt.Sprint(j.Status.Disruptions), story.Span(time.Since(s.Created)), message)
}

// columns are the cells of a row that are shown: the namespace with -A, the disruptions with -o wide.
func (g *get) columns(cells ...string) []string {
	const disruptions = 7
	if g.output != "wide" {
		cells = slices.Delete(cells, disruptions, disruptions+1)
	}
	if !g.all {
		cells = cells[1:]
	}
	return cells
}

// printNames prints jobs as other verbs take them.
func printNames(cmd *cobra.Command, jobs []*yard.Job) error {
	out := &printer{Writer: cmd.OutOrStdout()}
	for _, j := range jobs {
		out.printf("%s\n", nameOf(j))
	}
	return out.err
}

func nameOf(j *yard.Job) string { return strings.ToLower(j.Kind.Name()) + "/" + j.Job.Name }

// otherObjects says what those want who write `get` as for kubectl.
var otherObjects = map[string]string{
	"jobs": "`trainyard get` lists the jobs", "pods": "`trainyard kubectl get pods` lists the pods", "pod": "`trainyard kubectl get pods` lists the pods",
	"nodes": "`trainyard kubectl get nodes` lists the nodes", "events": "`trainyard events JOB` lists the events of a job",
}

func (g *get) jobs(cmd *cobra.Command, args []string) ([]*yard.Job, error) {
	if len(args) == 1 && g.selector != "" {
		return nil, usageError{errors.New("a name and a selector are two ways to choose: leave out one")}
	}
	y, err := g.openPast()
	if err != nil {
		return nil, err
	}
	y.Stopped = y.Stopped && !g.watch
	if len(args) == 1 {
		find := g.find
		if g.history || y.Stopped {
			find = func(ctx context.Context, name string) (*yard.Yard, *yard.Job, error) { return g.look(ctx, cmd, name) }
		}
		y, j, err := find(cmd.Context(), args[0])
		if advice := otherObjects[args[0]]; advice != "" && errors.Is(err, yard.ErrNotFound) {
			err = fmt.Errorf("there is no job of the name %s: %s", args[0], advice)
		}
		if err != nil {
			return nil, err
		}
		return []*yard.Job{j}, g.explain(y.AskKueue(cmd.Context(), j))
	}
	selector, err := parseSelector(g.selector)
	if err != nil {
		return nil, err
	}
	namespace := y.Namespace
	if g.all {
		namespace = ""
	}
	var jobs []*yard.Job
	if !y.Stopped {
		jobs, err = y.Jobs(cmd.Context(), namespace, selector)
		y.Stopped = hasEnded(y, err) && !g.watch
		if err != nil && !y.Stopped {
			return nil, g.explain(err)
		}
	}
	if !y.Stopped {
		if err := y.AskKueue(cmd.Context(), jobs...); err != nil {
			return nil, g.explain(err)
		}
	}
	if y.Stopped {
		fmt.Fprintln(cmd.ErrOrStderr(), "The local cluster is not running. This is what was recorded.")
	}
	if g.history || y.Stopped {
		return g.addPast(cmd, y, namespace, jobs)
	}
	return jobs, nil
}

// addPast adds the jobs that were recorded and are not among the present ones. Without --history deleted ones are left out. A record that cannot be
// read is reported, and the others are listed.
func (g *get) addPast(cmd *cobra.Command, y *yard.Yard, namespace string, jobs []*yard.Job) ([]*yard.Job, error) {
	selector, err := labels.Parse(g.selector)
	if err != nil {
		return nil, err // it was parsed before
	}
	past, err := y.PastJobs(namespace)
	if err != nil {
		return nil, err
	}
	present := map[types.UID]bool{}
	for _, j := range jobs {
		present[j.Job.UID] = true
	}
	for _, s := range past {
		if present[s.UID] || !g.history && !s.Deleted.IsZero() {
			continue
		}
		j, err := y.Recall(s)
		if errors.Is(err, record.ErrNone) {
			continue // it has just been pruned
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "A job is not listed: %v.\n", err)
			continue
		}
		if selector.Matches(labels.Set(j.Object.GetLabels())) {
			j.Recorded.Pods, j.Recorded.Events = nil, nil // there may be thousands of jobs, and a list needs neither
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
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
