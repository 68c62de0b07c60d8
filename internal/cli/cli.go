// Package cli is the command line: one file per verb. A verb reads its flags, does its work through the packages that know
// how, and says the outcome in words for a person and an exit code for a script: 0 done, 1 failed, 2 wrong usage.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError is the person's mistake, to be mended on the command line.
type usageError struct{ error }

// Run runs the command that args, with the program's name first, ask for and returns the exit code.
func Run(args []string) int {
	err := command(args[1:]).Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "trainyard: %v\n", err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

func command(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "trainyard",
		Short:         "Run distributed training jobs on this machine or on any Kubernetes cluster",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())}
	})
	root.AddCommand(upCommand(), kubectlCommand(args), flyteCommand(), versionCommand())
	root.SetArgs(args)
	return root
}

// defaultDataDir is where the local cluster is kept unless a person says otherwise.
func defaultDataDir() (string, error) {
	if dir := os.Getenv("TRAINYARD_DATA_DIR"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "trainyard"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usageError{fmt.Errorf("finding a place for the local cluster: %w; name one with --data-dir", err)}
	}
	return filepath.Join(home, ".local", "share", "trainyard"), nil
}
