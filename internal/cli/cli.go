// Package cli is the command line: one file per verb. A verb reads its flags, calls the packages that do the work, and
// prints the outcome for people and returns an exit code for scripts. Files that are not named after a verb hold what verbs share;
// those that begin with follow_ belong to the follower of follow.go.
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
	exitDeadline    = 124 // like timeout(1)
	exitHangup      = 129 // like shells, as are 130 and 143
	exitInterrupted = 130
	exitTerminated  = 143
)

// usageError is a mistake on the command line or in a manifest.
type usageError struct{ error }

// outcome is an exit code whose reason has been printed already.
type outcome int

func (o outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// Run runs the command in args, whose first element is the program's name, and returns the exit code.
func Run(args []string) int {
	if len(args) < 2 || args[1] != "kubectl" {
		silenceLibraries()
	}
	name := "trainyard"
	if filepath.Base(args[0]) == "kubectl-trainyard" {
		name = "kubectl trainyard"
	}
	return run(name, args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// silenceLibraries keeps the logs of libraries off the terminal: verbs report what matters themselves.
func silenceLibraries() {
	klog.SetLogger(klog.Logger{})
	ctrl.SetLogger(klog.Logger{})
}

// run runs a command. The name is what the person calls the program.
func run(name string, args []string, in io.Reader, out, errOut io.Writer) int {
	root := command(name, args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.Execute()
	var exit outcome
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
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
	}
	root.SetFlagErrorFunc(flagError)
	if flag := pflag.CommandLine.Lookup("version"); flag != nil {
		flag.Hidden = true // it belongs to a linked component of Kubernetes
	}
	root.AddGroup(
		&cobra.Group{ID: groupJobs, Title: "Run training jobs, and look at them:"},
		&cobra.Group{ID: groupOffline, Title: "Look at a manifest, without a cluster:"},
		&cobra.Group{ID: groupLocal, Title: "The local cluster:"},
	)
	group(root, groupJobs, runCommand(), submitCommand(), getCommand(), logsCommand(), attachCommand(), whyCommand(), waitCommand(), eventsCommand(), historyCommand(), uiCommand(), traceCommand(),
		suspendCommand(), resumeCommand(), scaleCommand(), deleteCommand(), topCommand(), execCommand(), cpCommand(), portForwardCommand())
	group(root, groupOffline, renderCommand(), lintCommand(), simulateCommand(), convertCommand())
	group(root, groupLocal, upCommand(), downCommand(), statusCommand(), pruneCommand(), nodeCommand(), kubectlCommand(args))
	root.AddCommand(installCommand(), flyteCommand(), versionCommand())
	root.SetArgs(args)
	root.InitDefaultCompletionCmd(args...)
	root.InitDefaultHelpCmd()
	showVersion := root.Flags().Bool("version", false, "print the versions, like the command version")
	root.Args, root.RunE = rejectUnknownCommand, func(cmd *cobra.Command, args []string) error {
		if *showVersion {
			return printVersion(cmd, args)
		}
		return cmd.Help()
	}
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = rejectUnknownTopic
		case "completion":
			for _, shell := range cmd.Commands() {
				shell.Args = noArguments
			}
		}
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args, cmd.RunE = rejectUnknownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
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
