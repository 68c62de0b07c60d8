package cluster

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// watchesWanted is how many inotify instances the cluster's parts use, with some to spare.
const watchesWanted = 16

// inotifyNote says that the machine has too few inotify instances left, by which parts of Kubernetes see that their certificates or
// volumes change. Without this the logs say "too many open files", which leads to the wrong limit. open opens an instance.
func inotifyNote(open func() (fd int, err error)) string {
	for range watchesWanted {
		fd, err := open()
		if errors.Is(err, unix.EMFILE) {
			return fmt.Sprintf("other programs use up this machine's inotify instances, so that changed files may be seen late or not at all: "+
				"as root, `sysctl fs.inotify.max_user_instances=512` (it is %s)", firstLine("/proc/sys/fs/inotify/max_user_instances"))
		}
		if err == nil {
			defer unix.Close(fd) //nolint:errcheck // nothing was written
		}
	}
	return ""
}

func openInotify() (int, error) { return unix.InotifyInit1(unix.IN_CLOEXEC) }
