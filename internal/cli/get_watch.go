package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/yard"
)

// follow prints the jobs, and then each job again when it has changed, until Ctrl-C.
func (g *get) follow(cmd *cobra.Command, args []string) error {
	if g.output == "yaml" || g.output == "json" {
		return usageError{errors.New("--watch prints lines: use -o table, wide or name, or `trainyard attach JOB -o json` for one job")}
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	jobs, err := g.jobs(cmd, args)
	if err != nil {
		return err
	}
	selector, err := parseSelector(g.selector)
	if err != nil {
		return err
	}
	y, err := g.open()
	if err != nil {
		return err
	}
	namespace := y.Namespace
	if g.all {
		namespace = ""
	}
	changes, err := y.FollowJobs(ctx, namespace, contactTo(cmd.ErrOrStderr()), selector)
	if err != nil {
		return g.explain(err)
	}
	table := &growingTable{out: cmd.OutOrStdout(), last: map[string]string{}}
	if g.output != "name" {
		table.header = g.header()
	}
	for _, j := range jobs {
		table.fit(g.cells(j))
	}
	for _, j := range jobs {
		table.print(j, g.cells(j))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case j := <-changes:
			if len(args) == 0 || j.Job.Name == jobs[0].Job.Name && j.Kind.Name() == jobs[0].Kind.Name() {
				table.print(j, g.cells(j))
			}
		}
	}
}

// cells are what is printed of a job.
func (g *get) cells(j *yard.Job) []string {
	if g.output == "name" {
		return []string{nameOf(j)}
	}
	return g.row(j)
}

// growingTable prints rows one by one. Its columns are as wide as the widest cell so far.
type growingTable struct {
	out    io.Writer
	header []string // printed before the first row
	widths []int
	last   map[string]string // the last row of each job, without its age
}

func (t *growingTable) fit(cells []string) {
	for i, cell := range cells {
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
	}
}

// print prints a job, unless only its age has changed.
func (t *growingTable) print(j *yard.Job, cells []string) {
	key := string(j.Object.GetUID())
	row := strings.Join(cells, "\t")
	if len(cells) > 2 {
		row = strings.Join(append(append([]string{}, cells[:len(cells)-2]...), cells[len(cells)-1]), "\t") // the age is the last but one
	}
	if t.last[key] == row {
		return
	}
	t.last[key] = row
	t.fit(cells)
	if t.header != nil {
		t.fit(t.header)
		t.line(t.header)
		t.header = nil
	}
	t.line(cells)
}

func (t *growingTable) line(cells []string) {
	var out strings.Builder
	for i, cell := range cells {
		out.WriteString(cell + strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+3))
	}
	fmt.Fprintln(t.out, strings.TrimRight(out.String(), " "))
}
