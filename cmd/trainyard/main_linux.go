// Command trainyard runs training jobs: on this machine, in its own Kubernetes, or on any cluster.
package main

import (
	"os"

	"github.com/trainyard/trainyard/internal/cli"
	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/localoperator"
	"github.com/trainyard/trainyard/internal/mpiagent"
)

func main() {
	mpiagent.Main()
	cluster.Main(cluster.Addon{Name: cli.OperatorAddon, Run: localoperator.Run})
	os.Exit(cli.Run(os.Args))
}
