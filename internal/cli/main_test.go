package cli_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	clusterarchive "github.com/trainyard/trainyard/internal/archive"
	"github.com/trainyard/trainyard/internal/cli"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/localoperator"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// What the test binary is called when it is to be trainyard, and as kubectl's plugin.
const (
	trainyardName = "trainyard-test-cli"
	pluginName    = "kubectl-trainyard"
)

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == trainyardName || name == pluginName {
		os.Exit(cli.Run(os.Args))
	}
	if os.Args[0] == recorderName {
		fmt.Fprintln(os.Stderr, recordAlone(os.Args[1], os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	if os.Args[0] == archiveName {
		if err := clusterarchive.Run(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_, _ = os.Setenv("AWS_ACCESS_KEY_ID", "key"), os.Setenv("AWS_SECRET_ACCESS_KEY", "secret") // of the bucket in a test
	// Under nohup commands would inherit that SIGHUP is ignored. What a process catches its children do not ignore.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	operator := cluster.Addon{Name: cli.OperatorAddon, Run: localoperator.Run}
	if os.Getenv(unrecorded) != "" {
		operator.Run = localoperator.RunUnrecorded
	}
	local.Main(m, operator)
}
