//go:build !linux

// Command trainyard runs training jobs on any cluster. The local cluster is in it on Linux only.
package main

import (
	"os"

	"github.com/trainyard/trainyard/internal/cli"
)

func main() { os.Exit(cli.Run(os.Args)) }
