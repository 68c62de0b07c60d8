package cluster

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxLogFile is the size at which the log of the cluster or of a node is moved away. The one before is removed, so that both together
// have at most twice this size, however long the cluster runs.
const maxLogFile = 32 << 20

// logFile is the file behind standard output and standard error of this process, into which also writes what knows nothing of it.
type logFile struct {
	path  string
	limit int64
	mu    sync.Mutex
}

// Write writes to the file, after moving a full one away.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := os.Stderr.Stat(); err == nil && info.Size() >= l.limit {
		l.replace()
	}
	return os.Stderr.Write(p)
}

// replace continues in a new file. If that cannot be had, the old one goes on.
func (l *logFile) replace() {
	if os.Rename(l.path, l.path+".1") != nil {
		return
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // standard output and standard error have it open
	for _, fd := range []int{1, 2} {
		_ = unix.Dup3(int(file.Fd()), fd, 0)
	}
}
