// Command trainyard runs training jobs: on this machine, in a Kubernetes of its own, or on any cluster.
package main

import (
	"os"

	"github.com/trainyard/trainyard/internal/cli"
	"github.com/trainyard/trainyard/internal/cluster"
)

func main() {
	cluster.Main()
	os.Exit(cli.Run(os.Args))
}
