package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
)

func suspendCommand() *cobra.Command {
	return suspendOrResume("suspend", "suspended", "Take a job's pods away and keep the job", true)
}

func resumeCommand() *cobra.Command {
	return suspendOrResume("resume", "resumed", "Let a suspended job run again", false)
}

func suspendOrResume(verb, done, short string, suspend bool) *cobra.Command {
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
			out := &printer{Writer: cmd.OutOrStdout()}
			switch {
			case j.Status.Finished():
				return errors.New("job " + j.Job.Name + " has ended: there is nothing to " + verb)
			case j.Job.Policy.Suspend == suspend:
				out.printf("%s is %s already.\n", j.Job.Name, done)
				return out.err
			}
			patch := fmt.Appendf(nil, `{"spec":{"runPolicy":{"suspend":%t}}}`, suspend)
			if j.Kind.Name() == trainer.TrainJobKind {
				patch = fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
			}
			if err := y.Patch(cmd.Context(), j.Object, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return t.explain(err)
			}
			out.printf("%s is %s.\n", j.Job.Name, done)
			return out.err
		},
	}
	addTarget(cmd, &t)
	return cmd
}
