package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/internal/procrun"
)

// home is a data directory in use: locked, with its log and the port where the cluster is reached.
type home struct {
	lock     *os.File
	guests   *os.File
	log      *os.File
	listener net.Listener
}

// openHome takes a data directory for this process.
func openHome(dir string) (*home, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	h := &home{}
	var err error
	if h.lock, err = lockFile(filepath.Join(dir, "lock"), dir); err != nil {
		return nil, err
	}
	if err := checkVersion(dir); err != nil {
		h.close()
		return nil, err
	}
	if h.guests, err = openGuests(dir, os.O_CREATE); err != nil {
		h.close()
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	logName := filepath.Join(dir, "cluster.log")
	_ = os.Rename(logName, logName+".1") // the log of the run before is kept
	if h.log, err = os.OpenFile(logName, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		h.close()
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	if h.listener, err = listen(filepath.Join(dir, "port")); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// Files are the patterns of what a cluster keeps in its data directory, the lock last.
func Files() []string {
	return []string{"etcd", "pki", "kubelet", "runtime", "nodes", "kubeconfig*", "port", "version*", "cluster.log*", "guests", "lock"}
}

// Lock takes a data directory for a process that runs no cluster in it, until it releases it.
func Lock(dataDir string) (release func(), _ error) {
	if _, err := os.Stat(filepath.Join(dataDir, "lock")); err != nil {
		return nil, err
	}
	file, err := lockFile(filepath.Join(dataDir, "lock"), dataDir)
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// lockFile takes the lock that says who uses a data directory. The lock goes with the last process that has it open.
func lockFile(name, dir string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	holder, err := lock(file)
	if err == nil {
		err = writeHolder(file)
	}
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, unix.EWOULDBLOCK) && !holder.Here():
		err = holder.ElsewhereError(dir)
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("%w: process %d holds %s; use that cluster by its kubeconfig, or name another data directory", ErrRunning, holder.PID, dir)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK):
		err = fmt.Errorf("the file system of %s has no locks (%w): name a directory of a local disk with --data-dir", dir, err)
	default:
		err = fmt.Errorf("locking the data directory: %w", err)
	}
	_ = file.Close()
	return nil, err
}

// lock takes a file's lock, or returns the process that holds it. If that was killed it waits, as the enclave ends a moment after it.
// The description of a holder elsewhere may be that of the last one, while somebody asks who the holder is: it waits for this, too.
func lock(file *os.File) (holder Holder, err error) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return Holder{}, err
		}
		holder = readHolder(file)
		limit := time.Duration(0)
		switch {
		case !holder.Here():
			limit = askWait
		case holder.PID > 0 && errors.Is(unix.Kill(holder.PID, 0), unix.ESRCH):
			limit = lockWait
		}
		if time.Since(began) >= limit {
			return holder, err
		}
	}
}

const (
	lockWait = 10 * time.Second // how long a killed cluster's enclave may take to end
	askWait  = time.Second      // how long it may take to ask who holds the lock
)

// listen opens the port the cluster had last time, so that kubeconfigs stay true, or any free one.
func listen(name string) (net.Listener, error) {
	content, _ := os.ReadFile(name)
	last, _ := strconv.Atoi(strings.TrimSpace(string(content)))
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", last))
	if err != nil && last != 0 {
		listener, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("opening a port for the API server: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(name, []byte(strconv.Itoa(port)), 0o600); err != nil {
		return nil, fmt.Errorf("noting the API server's port: %w", err)
	}
	return listener, nil
}

// close gives the directory back. Whoever waits to be a guest finds that nobody holds it.
func (h *home) close() {
	for _, file := range []*os.File{h.log, h.lock, h.guests} {
		if file != nil {
			_ = file.Close()
		}
	}
	if h.listener != nil {
		_ = h.listener.Close()
	}
}

// writeFile writes a file that only its owner reads, whole or not at all.
func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := procrun.WriteFile(name, content); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// cgroupName is the cgroup of a data directory's containers.
func cgroupName(dataDir string) string {
	return fmt.Sprintf("trainyard-%x", sha256.Sum256([]byte(dataDir)))[:22]
}

// sweepCgroups removes the control groups that the containers of a data directory left behind.
func sweepCgroups(dataDir string) {
	procrun.Sweep(cgroupName(dataDir))
	further, _ := os.ReadDir(furtherNodesPath(dataDir))
	for i, entry := range further {
		procrun.Sweep(nodeSpec{Name: entry.Name(), Index: i + 1}.cgroup(dataDir))
	}
}
