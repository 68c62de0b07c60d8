package cli

import (
	"github.com/spf13/cobra"
)

func submitCommand() *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "submit -f job.yaml",
		Short: "Submit a job and leave it to the cluster",
		Long: `Submit a job, with the other objects of its file, and leave it to the cluster. A finished job of the same name makes
room for it. ` + "`trainyard run`" + ` also follows it.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.submitOnly(cmd) },
	}
	addFile(cmd, &r.file)
	addTarget(cmd, &r.target)
	return cmd
}

func (r *running) submitOnly(cmd *cobra.Command) error {
	objects, kind, err := objectsOf(cmd, r.file)
	if err != nil {
		return err
	}
	y, err := r.open()
	if err != nil {
		return err
	}
	j, err := r.submit(cmd.Context(), y, kind, objects)
	if err != nil {
		return r.explain(err)
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	where := ""
	if cmd.Flags().Changed("namespace") {
		where = " -n " + j.Job.Namespace
	}
	out.printf("%s %s is submitted. Follow it with `trainyard logs -f %[2]s%s`.\n", j.Kind.Name(), j.Job.Name, where)
	return out.err
}
