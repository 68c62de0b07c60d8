package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	utilexec "k8s.io/client-go/util/exec"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
)

// execution is `trainyard exec`: a command in the container of a replica.
type execution struct {
	replicaTarget
	stdin, tty bool
}

func execCommand() *cobra.Command {
	var e execution
	cmd := &cobra.Command{
		Use:   "exec JOB [REPLICA] -- command …",
		Short: "Run a command in a running replica",
		Long: `Run a command in a running replica, beside the training. The exit code is the command's. On a terminal the command gets
the terminal; otherwise it gets standard input with -i only. A job with one replica needs no REPLICA.`,
		Example: `  trainyard exec demo worker-1 -- sh
  trainyard exec demo worker-1 -- nvidia-smi
  echo 'print(1)' | trainyard exec -i demo -- python3`,
		Args: e.checkArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
	}
	addReplicaTarget(cmd, &e.replicaTarget)
	cmd.Flags().BoolVarP(&e.stdin, "stdin", "i", false, "pass standard input (default: on a terminal)")
	cmd.Flags().BoolVarP(&e.tty, "tty", "t", false, "give the command a terminal (default: on a terminal)")
	return cmd
}

func (*execution) checkArguments(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0 || dash == len(args):
		return usageError{errors.New("no command is given: put it after --, as in `trainyard exec demo worker-1 -- sh`")}
	case dash == 0 || dash > 2:
		return usageError{errors.New("name a job and a replica before --, as in `trainyard exec demo worker-1 -- sh`")}
	}
	return nil
}

func (e *execution) run(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	r, err := e.reach(cmd.Context(), args[0], second(args[:dash]))
	if err != nil {
		return err
	}
	if onTerminal := term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())); onTerminal && !cmd.Flags().Changed("tty") && !cmd.Flags().Changed("stdin") {
		e.stdin, e.tty = true, true
	}
	options := &kubectlexec.ExecOptions{
		StreamOptions: kubectlexec.StreamOptions{
			Namespace: r.pod.Namespace, PodName: r.pod.Name, ContainerName: r.container, Stdin: e.stdin || e.tty, TTY: e.tty,
			IOStreams: genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()},
		},
		Command: args[dash:], Executor: &kubectlexec.DefaultRemoteExecutor{}, PodClient: r.yard.Core.CoreV1(), Config: r.config,
	}
	err = options.Run()
	if exit := (utilexec.CodeExitError{}); errors.As(err, &exit) {
		return outcome(exit.Code)
	}
	return e.explain(err)
}

// second is the second of a list, empty if there is none.
func second(list []string) string {
	if len(list) < 2 {
		return ""
	}
	return list[1]
}
