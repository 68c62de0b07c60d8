package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/lint"
	"github.com/trainyard/trainyard/internal/text"
)

// linting is `trainyard lint`: all problems of a manifest, without a cluster.
type linting struct {
	file, output string
	strict       bool
}

func lintCommand() *cobra.Command {
	var l linting
	cmd := &cobra.Command{
		Use:   "lint -f job.yaml",
		Short: "Find every problem of a manifest, with line numbers",
		Long: `Find every problem of a manifest, with line numbers. No cluster is needed.

An error is something that an API server would reject, in the job or in its pods and Services. A warning is something
that it would accept, but that you may not have meant. The exit code is 1 if there is an error.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	addFile(cmd, &l.file, "the manifest")
	cmd.Flags().StringVarP(&l.output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVar(&l.strict, "strict", false, "treat warnings as errors")
	return cmd
}

func (l *linting) run(cmd *cobra.Command) error {
	if err := checkChoice("output", l.output, "text", "json"); err != nil {
		return err
	}
	written, err := readManifest(cmd, l.file)
	if err != nil {
		return err
	}
	problems, count, err := lint.Check(cmd.Context(), l.file, written)
	if err != nil {
		return err
	}
	if err := l.print(cmd.OutOrStdout(), problems, count); err != nil {
		return err
	}
	for _, p := range problems {
		if p.Severity == lint.Error || l.strict {
			return outcome(exitFailed)
		}
	}
	return nil
}

func (l *linting) print(w io.Writer, problems []lint.Problem, count lint.Count) error {
	out := &printer{Writer: w}
	if l.output == "json" {
		if problems == nil {
			problems = []lint.Problem{}
		}
		text, err := json.MarshalIndent(problems, "", "  ")
		if err != nil {
			return err
		}
		out.printf("%s\n", text)
		return out.err
	}
	errors := 0
	for _, p := range problems {
		out.printf("%s\n", p)
		if p.Severity == lint.Error {
			errors++
		}
	}
	switch warnings := len(problems) - errors; {
	case len(problems) == 0 && count == lint.Count{}:
		out.printf("%s: no training job in it, so nothing to check\n", l.file)
	case len(problems) == 0 && count.Jobs == 0:
		out.printf("%s: %s, no problems\n", l.file, text.Count(count.Runtimes, "runtime", "runtimes"))
	case len(problems) == 0:
		out.printf("%s: %s, no problems\n", l.file, text.Count(count.Jobs, "job", "jobs"))
	default:
		out.printf("%s, %s\n", text.Count(errors, "error", "errors"), text.Count(warnings, "warning", "warnings"))
	}
	return out.err
}
