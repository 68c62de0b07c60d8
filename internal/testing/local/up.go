package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Up is `trainyard up` as a person runs it: a process of its own, which can be stopped and killed.
type Up struct {
	testing.TB
	DataDir string

	cmd    *exec.Cmd
	output output
	ended  chan struct{}
}

// StartUp runs `trainyard up` on a data directory, with more arguments. It is killed when the test ends.
func StartUp(t testing.TB, dataDir string, args ...string) *Up {
	t.Helper()
	return StartUpIn(t, os.Environ(), dataDir, args...)
}

// StartUpIn runs `trainyard up` in an environment.
func StartUpIn(t testing.TB, environment []string, dataDir string, args ...string) *Up {
	t.Helper()
	if !hasOperator {
		args = append(args, "--without-operator")
	}
	u := &Up{TB: t, DataDir: dataDir, cmd: CLI(append([]string{"up", "--data-dir", dataDir}, args...)...), ended: make(chan struct{})}
	u.cmd.Env = environment
	u.cmd.Stdout, u.cmd.Stderr = &u.output, &u.output
	if err := u.cmd.Start(); err != nil {
		t.Fatalf("starting `trainyard up`: %v", err)
	}
	go func() {
		_ = u.cmd.Wait()
		close(u.ended)
	}()
	t.Cleanup(func() {
		u.Signal(syscall.SIGKILL)
		<-u.ended
	})
	return u
}

// Ready waits until it says that the cluster is ready.
func (u *Up) Ready() *Up { u.Helper(); return u.Says("Ctrl-C stops it") }

// Says waits until it has said something.
func (u *Up) Says(words string) *Up {
	u.Helper()
	deadline := time.After(Timeout)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if strings.Contains(u.Output(), words) {
				return u
			}
		case <-u.ended:
			u.Fatalf("`trainyard up` ended:\n%s%s", u.Output(), u.log())
		case <-deadline:
			u.Fatalf("`trainyard up` does not say %q:\n%s%s", words, u.Output(), u.log())
		}
	}
}

// log is the end of what the cluster logged.
func (u *Up) log() string {
	log, _ := os.ReadFile(filepath.Join(u.DataDir, "cluster.log"))
	return tail(string(log), 30)
}

// Kubeconfig is where it leaves the kubeconfig if nothing else is asked for.
func (u *Up) Kubeconfig() string { return filepath.Join(u.DataDir, "kubeconfig") }

// Pid is its process.
func (u *Up) Pid() int { return u.cmd.Process.Pid }

// Signal sends it a signal; one that has ended gets none.
func (u *Up) Signal(s syscall.Signal) { _ = u.cmd.Process.Signal(s) }

// Wait waits for its end and returns the exit code, -1 if a signal ended it.
func (u *Up) Wait() int {
	u.Helper()
	select {
	case <-u.ended:
	case <-time.After(Timeout):
		u.Fatalf("`trainyard up` does not end:\n%s", u.Output())
	}
	return u.cmd.ProcessState.ExitCode()
}

// Output is what it has printed so far.
func (u *Up) Output() string { return u.output.String() }

// output collects what a process prints, for others to read meanwhile.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
