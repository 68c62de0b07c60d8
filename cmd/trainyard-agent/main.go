// Command trainyard-agent starts the processes of MPIJobs in their Workers. It is part of the operator's image, from which an init
// container copies it into each pod. See package mpiagent.
package main

import (
	"fmt"
	"os"

	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
	"github.com/trainyard/trainyard/internal/mpiagent"
)

func main() {
	mpiagent.Main()
	fmt.Fprintf(os.Stderr, "this program must be called %s\n", mpiplan.Name)
	os.Exit(2)
}
