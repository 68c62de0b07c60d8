package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/flyte"
	"github.com/trainyard/trainyard/internal/text"
)

// flyteCommand answers what a Flyte team asks: which job Flyte makes of a task, what will surprise the task's author, and which phase
// Flyte reads from a job.
func flyteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flyte",
		Short: "See what Flyte makes of a task and of a job",
	}
	cmd.AddCommand(flyteRenderCommand(), flyteLintCommand(), flyteStatusCommand())
	return cmd
}

// flyteTask is a task in a file and how Flyte would run it.
type flyteTask struct {
	file    string
	dialect string
	run     flyte.Execution
}

func (f *flyteTask) flags(cmd *cobra.Command) {
	addFile(cmd, &f.file, "the task: a TaskTemplate, a TaskSpec or TaskTemplate.custom, as JSON, protobuf or base64")
	cmd.Flags().StringVar(&f.dialect, "dialect", string(flyte.Flyte1), "which Flyte: v1 or v2")
	cmd.Flags().StringVar(&f.run.Name, "name", "flyte-task", "the name that Flyte would give the job")
	cmd.Flags().StringVarP(&f.run.Namespace, "namespace", "n", "", "the namespace that Flyte would create it in")
}

func (f *flyteTask) read(cmd *cobra.Command) (flyte.Task, error) {
	dialect, err := parseDialect(f.dialect)
	if err != nil {
		return flyte.Task{}, err
	}
	f.run.Dialect = dialect
	if f.file == "" {
		return flyte.Task{}, usageError{fmt.Errorf("no task is named: use `%s -f TASK`", cmd.CommandPath())}
	}
	data, err := readInput(cmd, f.file, "task")
	if err != nil {
		return flyte.Task{}, err
	}
	task, err := flyte.DecodeTask(data)
	if err != nil {
		return flyte.Task{}, usageError{fmt.Errorf("reading task %s: %w", f.file, err)}
	}
	return task, nil
}

func parseDialect(name string) (flyte.Dialect, error) {
	switch d := flyte.Dialect(name); d {
	case flyte.Flyte1, flyte.Flyte2:
		return d, nil
	default:
		return "", usageError{fmt.Errorf("there is no dialect %q: use %s or %s", name, flyte.Flyte1, flyte.Flyte2)}
	}
}

func flyteRenderCommand() *cobra.Command {
	var f flyteTask
	cmd := &cobra.Command{
		Use:   "render -f TASK",
		Short: "Print the job that Flyte's backend makes of a task",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			task, err := f.read(cmd)
			if err != nil {
				return err
			}
			job, err := task.Render(f.run)
			if err != nil {
				return usageError{fmt.Errorf("rendering task %s: %w", f.file, err)}
			}
			for _, warning := range task.Lint(f.run) {
				fmt.Fprintf(cmd.ErrOrStderr(), "# %s\n", warning)
			}
			return printManifest(cmd.OutOrStdout(), job)
		},
	}
	f.flags(cmd)
	return cmd
}

// printManifest prints an object as it would be applied: without the fields that only a cluster sets.
func printManifest(out io.Writer, object runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("printing a manifest: %w", err)
	}
	delete(content, "status")
	removeEmptyTimes(content)
	text, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("printing a manifest: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// removeEmptyTimes removes the creation times that Go writes for objects that were never created.
func removeEmptyTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if at, exists := v["creationTimestamp"]; exists && at == nil {
			delete(v, "creationTimestamp")
		}
		for _, inner := range v {
			removeEmptyTimes(inner)
		}
	case []any:
		for _, inner := range v {
			removeEmptyTimes(inner)
		}
	}
}

func flyteLintCommand() *cobra.Command {
	var f flyteTask
	cmd := &cobra.Command{
		Use:   "lint -f TASK",
		Short: "Warn of what will surprise the author of a task; exit code 1 if anything does",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			task, err := f.read(cmd)
			if err != nil {
				return err
			}
			warnings := task.Lint(f.run)
			for _, warning := range warnings {
				fmt.Fprintln(cmd.OutOrStdout(), warning)
			}
			if len(warnings) > 0 {
				return fmt.Errorf("task %s: %s", f.file, text.Count(len(warnings), "warning", "warnings"))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "task %s: no warnings\n", f.file)
			return nil
		},
	}
	f.flags(cmd)
	return cmd
}
