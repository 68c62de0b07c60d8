package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is the release, set at build time.
var Version = "dev"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of trainyard and of the Kubernetes in it",
		Args:  noArguments,
		RunE:  printVersion,
	}
}

func printVersion(cmd *cobra.Command, _ []string) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "trainyard %s (Kubernetes %s, %s, %s/%s)\n",
		Version, dependency("k8s.io/kubernetes"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// dependency is the version of a module that is built in.
func dependency(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}
