// Package enclave starts a program in namespaces of its own: a PID namespace of which it is the first process, a
// mount and a network namespace, and, for an ordinary user, a user namespace in which that user is root.
//
// The local cluster lives in one. Whatever it makes there, processes, mounts, bridges, addresses, is gone the moment
// its first process ends, however it ends: there is no clean-up that a SIGKILL could skip, and nothing on the
// machine itself is changed. The parent that called Start stays outside; the two share only the files it hands over.
// A socket opened outside stays outside, so the enclave can serve a port of the machine that its parent opened.
package enclave

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Config says what to run in an enclave.
type Config struct {
	Args   []string   // argv of this same executable; Args[0] is how it recognises its part
	Env    []string   // its environment
	Files  []*os.File // handed over as descriptors 3, 4, …
	Output *os.File   // its standard output and error
}

// Process is a program in an enclave, seen from outside.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start runs this executable in a new enclave. The enclave ends when its process does, and with the caller's process at
// the latest.
func Start(config Config) (*Process, error) {
	p := &Process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when the *thread* that forked ends, so this thread is kept for
		// as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.start(config)
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// start tries plain namespaces first where the caller is root, then a user namespace around them.
func (p *Process) start(config Config) error {
	var err error
	for _, withUser := range []bool{false, true} {
		if !withUser && os.Geteuid() != 0 {
			continue
		}
		p.cmd = command(config, withUser)
		if err = p.cmd.Start(); err == nil || !refused(err) {
			return err
		}
	}
	return unavailable(err)
}

func refused(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EUSERS)
}

func command(config Config, withUser bool) *exec.Cmd {
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // a Ctrl-C at the terminal reaches the parent alone, which then stops us in order
	}
	if withUser {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        config.Args,
		Env:         config.Env,
		Stdout:      config.Output,
		Stderr:      config.Output,
		ExtraFiles:  config.Files,
		SysProcAttr: attr,
	}
}

// Pid is the process's number outside the enclave.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, once it has.
func (p *Process) Err() error { return p.err }

// Signal sends the process a signal.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }
