package cli_test

import (
	"os"
	"path/filepath"
	"testing"

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
	local.Main(m, cluster.Addon{Name: cli.OperatorAddon, Run: localoperator.Run})
}
