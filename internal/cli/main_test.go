package cli_test

import (
	"os"
	"testing"

	"github.com/trainyard/trainyard/internal/cli"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/operator"
	"github.com/trainyard/trainyard/internal/testing/local"
)

// trainyardName is what the test binary is called when it is to be trainyard.
const trainyardName = "trainyard-test-cli"

func TestMain(m *testing.M) {
	if os.Args[0] == trainyardName {
		os.Exit(cli.Run(os.Args))
	}
	local.Main(m, cluster.Addon{Name: cli.OperatorAddon, Run: operator.Run})
}
