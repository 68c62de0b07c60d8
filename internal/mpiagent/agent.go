// Package mpiagent is the program that lets mpirun start processes in the Workers of a job. It is an SSH server and an SSH client
// without OpenSSH: no sshd in the image, no rights on the API, no image with kubectl, and any user. An init container of every pod
// prepares a folder with this program and the host file; the Launcher's also waits until each Worker answers. Workers run the server,
// and mpirun calls the client. Processes have the environment of the Worker's container.
//
// The keys are in a Secret that the operator creates for each job: one pair proves that a client belongs to the job, another that a
// server does. So both sides are checked.
package mpiagent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// Main is the agent. It returns at once in a process that is none.
func Main() {
	args := os.Args[1:]
	switch base := filepath.Base(os.Args[0]); {
	case base == "ssh":
		args = append([]string{"ssh"}, args...)
	case base == mpiplan.Name:
	default:
		return
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", mpiplan.Name, err)
	}
	os.Exit(code)
}

// failed is the exit code where the agent itself fails, as OpenSSH has it.
const failed = 255

func run(args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New("nothing to do: use prepare, serve, ssh or hosts")
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "prepare":
		return exitCode(runPrepare(rest))
	case "serve":
		return runServe(rest)
	case "ssh":
		return runClient(rest)
	case "hosts":
		return exitCode(runHosts(os.Stdout))
	default:
		return 2, fmt.Errorf("unknown verb %s: use prepare, serve, ssh or hosts", verb)
	}
}

func exitCode(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}
