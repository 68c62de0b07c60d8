package procrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/internal/procrun/pid1"
)

// supervisor is a running pid1 process, seen from here.
type supervisor struct {
	process *os.Process
	control *os.File
	first   bool // of its PID namespace
	killing sync.Once
}

// launching says how to start a supervisor.
type launching struct {
	spec       pid1.Spec
	namespaces []*os.File // to enter first
	mount      *os.File   // mount namespace to enter; nil: a copy of the enclave's, by flags
	flags      uintptr    // namespaces to create
	streams    [3]*os.File
	place      func(pid int) error // puts the process into its control group before it does anything
}

// launch starts a supervisor and returns when its command runs. The error is a *pid1.Failure where the command itself
// is at fault.
func launch(l launching) (*supervisor, error) {
	specRead, specWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = specRead.Close() }()
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		_ = specWrite.Close()
		return nil, err
	}
	defer func() { _ = statusRead.Close() }()
	files := []*os.File{l.streams[0], l.streams[1], l.streams[2], specRead, statusWrite}
	s := &supervisor{control: specWrite, first: l.flags&unix.CLONE_NEWPID != 0}
	err = onOwnThread(func() error { return l.fork(s, files) })
	_ = statusWrite.Close()
	if err == nil {
		if err = l.instruct(s, statusRead); err != nil {
			s.kill()
			_, _ = s.wait()
		}
	}
	if err != nil {
		_ = specWrite.Close()
		return nil, err
	}
	return s, nil
}

// fork starts the process from the calling thread, which it moves into the namespaces first.
func (l *launching) fork(s *supervisor, files []*os.File) error {
	if err := enter(l.namespaces...); err != nil {
		return err
	}
	if l.mount != nil {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("separating the thread's file system view: %w", err)
		}
		if err := enter(l.mount); err != nil {
			return err
		}
	}
	process, err := os.StartProcess("/proc/self/exe", []string{pid1.Name}, &os.ProcAttr{
		Dir: "/", Env: pid1.Environ, Files: files, Sys: &syscall.SysProcAttr{Cloneflags: l.flags},
	})
	s.process = process
	return err
}

// instruct sends the spec and waits for the answer.
func (l *launching) instruct(s *supervisor, status io.Reader) error {
	if l.place != nil {
		if err := l.place(s.process.Pid); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(s.control).Encode(l.spec); err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	answer, err := io.ReadAll(status)
	if err != nil || len(answer) == 0 {
		return err
	}
	var failure pid1.Failure
	if err := json.Unmarshal(answer, &failure); err != nil {
		return fmt.Errorf("reading the supervisor's answer %q: %w", answer, err)
	}
	return &failure
}

// signal sends a signal that the supervisor passes on to its command.
func (s *supervisor) signal(sig syscall.Signal) {
	if err := s.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.kill()
	}
}

// kill ends the command and everything it left behind.
func (s *supervisor) kill() {
	s.killing.Do(func() {
		_ = s.control.Close()
		if s.first {
			_ = s.process.Kill()
		}
	})
}

// wait waits for the end and returns the exit code, 128 plus its number for a signal.
func (s *supervisor) wait() (int, error) {
	state, err := s.process.Wait()
	if err != nil {
		return 0, err
	}
	s.kill()
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return state.ExitCode(), nil
}
