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
	if h.guests, err = os.OpenFile(filepath.Join(dir, "guests"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
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

// lockFile takes the lock that says who uses a data directory. The lock goes with the last process that has it open.
func lockFile(name, dir string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	holder, err := lock(file)
	if err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: process %d holds %s; use that cluster by its kubeconfig, or name another data directory",
				ErrRunning, holder, dir)
		}
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	_ = file.Truncate(0)
	_, err = file.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	return file, err
}

// lock takes a file's lock, or returns the process that holds it. If that was killed it waits, as the enclave ends a moment after it.
func lock(file *os.File) (holder int, err error) {
	for waiting := time.Now().Add(lockWait); ; time.Sleep(10 * time.Millisecond) {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return 0, err
		}
		content := make([]byte, 20)
		n, _ := file.ReadAt(content, 0)
		holder, _ = strconv.Atoi(strings.TrimSpace(string(content[:n])))
		if gone := holder > 0 && errors.Is(unix.Kill(holder, 0), unix.ESRCH); !gone || time.Now().After(waiting) {
			return holder, err
		}
	}
}

// lockWait is how long a killed cluster's enclave may take to end.
const lockWait = 10 * time.Second

// ErrRunning says that a data directory has a running cluster.
var ErrRunning = errors.New("a local cluster is already running")

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
	fresh := name + ".new"
	if err := os.WriteFile(fresh, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Rename(fresh, name); err != nil {
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
