package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/yard"
)

func suspendCommand() *cobra.Command {
	return suspendOrResume("suspend", "suspended", "suspended already", "Stop a job's pods and keep the job", true)
}

func resumeCommand() *cobra.Command {
	return suspendOrResume("resume", "resumed", "not suspended", "Let a suspended job run again", false)
}

func suspendOrResume(verb, done, before, short string, suspend bool) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   verb + " JOB",
		Short: short,
		Args:  oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			y, j, err := t.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := checkEditable(j, verb); err != nil {
				return err
			}
			out := &printer{Writer: cmd.OutOrStdout()}
			if j.Job.Policy.Suspend == suspend {
				out.printf("%s is %s.\n", j.Job.Name, before)
				return out.err
			}
			was := j.Object.DeepCopyObject().(client.Object)
			j.Kind.Suspend(j.Object, suspend)
			if err := y.Patch(cmd.Context(), j.Object, client.MergeFrom(was)); err != nil {
				return t.explain(err)
			}
			out.printf("%s is %s.\n", j.Job.Name, done)
			return out.err
		},
	}
	addTarget(cmd, &t)
	return cmd
}

// checkEditable refuses to edit a job that has ended or is being deleted.
func checkEditable(j *yard.Job, verb string) error {
	switch {
	case j.Job.Deleting:
		return fmt.Errorf("job %s is being deleted: there is nothing to %s", j.Job.Name, verb)
	case j.Status.Finished():
		return fmt.Errorf("job %s has ended: there is nothing to %s", j.Job.Name, verb)
	}
	return nil
}
