//go:build unix

package cli

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// endCluster is the signal by which `trainyard down` ends the process of a local cluster in order. However often it is sent, it kills
// nothing: a second SIGTERM kills the pods. Under nohup SIGHUP is ignored.
const endCluster = syscall.SIGUSR1

// outputLost reports whether nobody reads standard output or standard error any more.
func outputLost() bool {
	files := []unix.PollFd{{Fd: 1, Events: unix.POLLOUT}, {Fd: 2, Events: unix.POLLOUT}}
	if _, err := unix.Poll(files, 0); err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(f unix.PollFd) bool { return f.Revents&(unix.POLLERR|unix.POLLHUP) != 0 })
}
