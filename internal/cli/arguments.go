package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%q takes no arguments, but got %q", cmd.CommandPath(), args[0])}
	}
	return nil
}

// oneArgument checks that a verb has exactly one argument.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usageError{fmt.Errorf("no %s is named: use `%s`", what, cmd.CommandPath()+strings.TrimPrefix(cmd.Use, cmd.Name()))}
		case len(args) > 1:
			return usageError{fmt.Errorf("`%s` takes one %s, but got %d", cmd.CommandPath(), what, len(args))}
		}
		return nil
	}
}

// optionalArgument checks that a verb has at most one argument.
func optionalArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return oneArgument(what)(cmd, args)
	}
}

// otherTools says what to use instead of verbs of other tools that have no single counterpart here.
var otherTools = map[string]string{
	"stop":   "delete stops a job, suspend stops its pods and keeps it, down stops the local cluster",
	"start":  "run starts a job, resume starts a suspended one, up starts the local cluster",
	"launch": "run starts a job and follows it, submit only starts it",
	"create": "submit -f creates a job",
	"ssh":    "exec runs a command in a replica, as in `trainyard exec JOB worker-0 -- sh`",
	"shell":  "exec runs a command in a replica, as in `trainyard exec JOB worker-0 -- sh`",
	"queue":  "get lists the jobs",
	"jobs":   "get lists the jobs",
	"edit":   "scale and suspend change a job, and kubectl edit changes any field",
}

// rejectUnknownCommand refuses a word that is not a verb, and suggests similar verbs.
func rejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if advice := otherTools[args[0]]; advice != "" && !cmd.HasParent() {
		return usageError{fmt.Errorf("there is no command %q: %s", args[0], advice)}
	}
	if near := similarVerbs(cmd, args[0]); len(near) > 0 {
		return usageError{fmt.Errorf("there is no command %q: did you mean %s?", args[0], strings.Join(near, " or "))}
	}
	return usageError{fmt.Errorf("there is no command %q: `%s --help` lists them", args[0], cmd.CommandPath())}
}

// similarVerbs are the verbs that are most like a word: one letter differs, else two.
func similarVerbs(cmd *cobra.Command, word string) []string {
	for letters := 1; letters <= 2; letters++ {
		cmd.SuggestionsMinimumDistance = letters
		if near := cmd.SuggestionsFor(word); len(near) > 0 {
			return near
		}
	}
	return nil
}

// rejectUnknownTopic refuses help on a word that is not a verb.
func rejectUnknownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	switch {
	case err != nil || len(rest) == 0:
		return err
	case !found.HasSubCommands():
		return usageError{fmt.Errorf("`%s` has no commands, but got %q", found.CommandPath(), rest[0])}
	}
	return rejectUnknownCommand(found, rest)
}
