//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/cluster"
	"github.com/trainyard/trainyard/internal/yard"
)

// readyFD is the file descriptor on which `up` in the background says that it is ready.
const readyFD = 3

// upLog is the file in the data directory that has the output of `up` in the background.
const upLog = "up.log"

// startInBackground runs `trainyard up` with these flags in a session of its own. When the cluster is ready it returns its process, and
// what `up` has noted about the machine.
func startInBackground(ctx context.Context, dataDir string, flags ...string) (pid int, notes []string, _ error) {
	log, err := openUpLog(dataDir)
	if err != nil {
		return 0, nil, startError(err)
	}
	defer log.Close() //nolint:errcheck // the process has its own copy
	began, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, nil, err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer ready.Close() //nolint:errcheck // it was only read
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: append([]string{os.Args[0], "up", "--data-dir=" + dataDir, "--in-background"}, flags...),
		Env: os.Environ(), Stdout: log, Stderr: log, ExtraFiles: []*os.File{theirs}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return 0, nil, fmt.Errorf("starting the local cluster in the background: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	if n, _ := ready.Read(make([]byte, 1)); n == 1 {
		pid = cmd.Process.Pid
		return pid, notesOf(linesOf(log, began)), cmd.Process.Release()
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		return 0, nil, outcome(exitInterrupted)
	}
	lines := linesOf(log, began)
	return 0, nil, errors.New(strings.TrimPrefix(lines[len(lines)-1], "trainyard: ")) // the error that `up` printed last
}

// openUpLog opens the file for the output of `up`. If a cluster runs, its output is in that file and stays.
func openUpLog(dataDir string) (*os.File, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, err
	}
	flag := os.O_CREATE | os.O_RDWR | os.O_APPEND
	if _, held := cluster.HolderOf(dataDir); !held {
		flag |= os.O_TRUNC
	}
	return os.OpenFile(filepath.Join(dataDir, upLog), flag, 0o600)
}

// linesOf are the lines of a file that were written from an offset on.
func linesOf(file *os.File, from int64) []string {
	content, _ := io.ReadAll(io.NewSectionReader(file, from, math.MaxInt64-from))
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// notePrefix begins a line of `up` about something that the machine lacks.
const notePrefix = "Note: "

// notesOf are the notes among the lines of `up`.
func notesOf(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, notePrefix) })
}

// sayReady tells the process that started this one in the background that the cluster is ready.
func sayReady() {
	file := os.NewFile(readyFD, "ready")
	_, _ = file.Write([]byte{1})
	_ = file.Close()
}

// keepReadyFD keeps the descriptor from the processes of the cluster.
func keepReadyFD() { unix.CloseOnExec(readyFD) }

// holderPID is the process of this machine that holds a data directory, 0 if none does.
func holderPID(dataDir string) int {
	if holder, held := cluster.HolderOf(dataDir); held && holder.Here() {
		return holder.PID
	}
	return 0
}

// isRun reports whether a process is `trainyard run`, whose cluster ends with it.
func isRun(pid int) bool {
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(command), "\x00")
	return len(args) > 1 && args[1] == "run"
}

// clusterRuns reports whether a process of this machine holds a data directory. Its cluster may still be starting.
func clusterRuns(dataDir string) bool {
	holder, held := cluster.HolderOf(dataDir)
	return held && holder.Here()
}

// openInBackground connects to the local cluster, which it starts in the background if it does not run.
func (r *running) openInBackground(ctx context.Context) (*yard.Yard, error) {
	if err := r.chooseDir(); err != nil {
		return nil, err
	}
	switch pid := holderPID(r.dir); {
	case pid == 0 && !clusterRuns(r.dir):
		_, notes, err := startInBackground(ctx, r.dir)
		if err != nil {
			return nil, err
		}
		for _, note := range notes {
			r.screen.say("%s", note)
		}
		r.screen.say("The local cluster runs in the background: `trainyard down` stops it.")
	case isRun(pid):
		r.screen.say("The local cluster stops with the `trainyard run` that has started it, process %d. `trainyard up` then continues the job.", pid)
	}
	config, err := join(ctx, r.dir)
	if err != nil {
		return nil, startError(err)
	}
	r.local, r.defaultNamespace = true, metav1.NamespaceDefault
	r.namespace = cmp.Or(r.namespace, r.defaultNamespace)
	return r.yard(config)
}
