package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holder is the process that holds a data directory, as the file of its lock says. A home directory may be shared by many machines, so
// a process ID alone says nothing.
type Holder struct {
	PID    int    `json:"pid"`
	Host   string `json:"host,omitempty"`
	BootID string `json:"bootID,omitempty"` // of the machine's kernel since its last start; a host name may change meanwhile
}

// ErrRunning says that a data directory has a running cluster.
var ErrRunning = errors.New("a local cluster is already running")

// HolderOf is the process that holds a data directory. ok is false if none does. To find out, it takes the lock itself for a moment, for
// which a starting cluster waits.
func HolderOf(dataDir string) (h Holder, ok bool) {
	file, err := os.Open(filepath.Join(dataDir, "lock"))
	if err != nil {
		return h, false
	}
	defer file.Close() //nolint:errcheck // which releases the lock
	if !errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return h, false
	}
	return readHolder(file), true
}

// thisProcess is how this process describes itself to others.
func thisProcess() Holder {
	host, _ := os.Hostname()
	return Holder{os.Getpid(), host, bootID()}
}

func bootID() string { return firstLine("/proc/sys/kernel/random/boot_id") }

// Here reports whether the process is one of this machine. A holder that has not described itself yet counts as one.
func (h Holder) Here() bool { return h.BootID == "" || h.BootID == bootID() }

// ElsewhereError says that the cluster of a data directory runs on another machine.
func (h Holder) ElsewhereError(dataDir string) error {
	return fmt.Errorf("the local cluster of %s runs on host %s, as process %d: use it there, or name another directory with --data-dir", dataDir, h.Host, h.PID)
}

// readHolder reads what the holder of a lock wrote into its file. Older versions wrote the process ID alone.
func readHolder(file io.ReaderAt) (h Holder) {
	content := make([]byte, 1024)
	n, _ := file.ReadAt(content, 0)
	if json.Unmarshal(content[:n], &h) != nil {
		h.PID, _ = strconv.Atoi(strings.TrimSpace(string(content[:n])))
	}
	return h
}

func writeHolder(file *os.File) error {
	content, err := json.Marshal(thisProcess())
	if err != nil {
		return err
	}
	_ = file.Truncate(0)
	_, err = file.WriteAt(append(content, '\n'), 0)
	return err
}

// HasGuests reports whether other processes than the one that started it use the cluster of a data directory.
func HasGuests(dataDir string) bool {
	file, err := openGuests(dataDir, 0)
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // which releases the lock
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
