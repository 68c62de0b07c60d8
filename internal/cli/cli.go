// Package cli is the command line: one file per verb. A verb reads its flags, does its work through the packages that know
// how, and says the outcome in words for a person and an exit code for a script.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitDeadline    = 124 // as timeout(1) has it
	exitInterrupted = 130 // as shells have it
)

// usageError is the person's mistake, to be mended on the command line.
type usageError struct{ error }

// outcome is an end that has been told already: only the exit code is left to give.
type outcome int

func (o outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// Run runs the command that args, with the program's name first, ask for and returns the exit code.
func Run(args []string) int {
	if len(args) < 2 || args[1] != "kubectl" {
		hush()
	}
	name := "trainyard"
	if filepath.Base(args[0]) == "kubectl-trainyard" {
		name = "kubectl trainyard"
	}
	return run(name, args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// hush keeps what libraries log from a person's terminal: what matters of it is said in our words.
func hush() {
	klog.SetLogger(klog.Logger{})
	ctrl.SetLogger(klog.Logger{})
}

// run runs a command of the program, which the person calls by name.
func run(name string, args []string, in io.Reader, out, errOut io.Writer) int {
	root := command(name, args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.Execute()
	var told outcome
	switch {
	case err == nil:
		return 0
	case errors.As(err, &told):
		return int(told)
	}
	fmt.Fprintf(errOut, "trainyard: %v\n", err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// The groups in which help lists the verbs.
const (
	groupJobs    = "jobs"
	groupOffline = "offline"
	groupLocal   = "local"
)

func command(name string, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "trainyard",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:         "Run distributed training jobs on this machine or on any Kubernetes cluster",
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,
	}
	root.SetFlagErrorFunc(badFlag)
	if flag := pflag.CommandLine.Lookup("version"); flag != nil {
		flag.Hidden = true // one of Kubernetes' components', which are linked in
	}
	root.AddGroup(
		&cobra.Group{ID: groupJobs, Title: "Run training jobs, and look at them:"},
		&cobra.Group{ID: groupOffline, Title: "Look at a manifest, without a cluster:"},
		&cobra.Group{ID: groupLocal, Title: "The local cluster:"},
	)
	group(root, groupJobs, runCommand(), submitCommand(), getCommand(), logsCommand(), whyCommand(), waitCommand(), eventsCommand(),
		suspendCommand(), resumeCommand(), scaleCommand(), deleteCommand(), topCommand())
	group(root, groupOffline, renderCommand(), lintCommand(), simulateCommand(), convertCommand())
	group(root, groupLocal, upCommand(), kubectlCommand(args))
	root.AddCommand(installCommand(), flyteCommand(), versionCommand())
	root.SetArgs(args)
	root.InitDefaultCompletionCmd(args...)
	root.InitDefaultHelpCmd()
	showVersion := root.Flags().Bool("version", false, "print the versions, as the command version does")
	root.Args, root.RunE = knownCommand, func(cmd *cobra.Command, args []string) error {
		if *showVersion {
			return printVersion(cmd, args)
		}
		return cmd.Help()
	}
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = knownTopic
		case "completion":
			for _, shell := range cmd.Commands() {
				shell.Args = noArguments
			}
		}
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args, cmd.RunE = knownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

func group(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = id
		root.AddCommand(cmd)
	}
}
