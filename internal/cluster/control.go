package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/internal/procrun"
)

// message is what the cluster sends to the process that started it.
type message struct {
	Step       string               // what it starts next
	Error      string               // why it could not start
	Kubeconfig []byte               // how to reach it; it is ready
	Notes      []string             // what this machine does not let it do; sent with Kubeconfig
	Stopping   []procrun.RunningPod // what a stop waits for
}

// newControl makes the socket between a cluster and the process that started it, and returns both ends.
func newControl() (ours net.Conn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making the control socket: %w", err)
	}
	if ours, err = fileConn(pair[0]); err != nil {
		_ = unix.Close(pair[1])
		return nil, nil, err
	}
	return ours, os.NewFile(uintptr(pair[1]), "control"), nil
}

// fileConn is a connection over a socket that this process has open.
func fileConn(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close() //nolint:errcheck // FileConn has its own copy
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("taking over a socket: %w", err)
	}
	return conn, nil
}

// send sends a message; when nobody reads any more the cluster is about to end anyway.
func send(control net.Conn, m any) { _ = json.NewEncoder(control).Encode(m) }
