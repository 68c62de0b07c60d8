package pid1

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/trainyard/trainyard/internal/procrun/proc"
)

// supervise runs the command to its end and returns the exit code.
func supervise(spec Spec, control, status *os.File) int {
	runtime.LockOSThread() // no_new_privs and the parent of the command are properties of the thread
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, forwarded()...)
	main, err := begin(spec)
	if err != nil {
		var failure *Failure
		if !errors.As(err, &failure) {
			failure = &Failure{ExitCode: 128, Message: err.Error()}
		}
		_ = json.NewEncoder(status).Encode(failure)
		return failure.ExitCode
	}
	_ = status.Close()
	closeOwnStreams()
	go func() {
		for s := range signals {
			if main != 0 {
				_ = syscall.Kill(main, s.(syscall.Signal))
			}
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, control)
		killEverything()
		os.Exit(128 + int(syscall.SIGKILL))
	}()
	code := reapUntil(main)
	if spec.KillOrphans {
		killDescendants()
	}
	return code
}

// begin builds the view and starts the command; without a command there is nothing to start.
func begin(spec Spec) (pid int, err error) {
	if spec.View != nil {
		if err := spec.View.Build(); err != nil {
			return 0, err
		}
	}
	if os.Getpid() != 1 {
		if err := prctl(prSetChildSubreaper, 1); err != nil {
			return 0, err
		}
	}
	if len(spec.Args) == 0 {
		return 0, nil
	}
	return start(spec)
}

// forwarded lists the signals that are passed on to the command: all that can be caught, but for those the Go runtime
// and the kernel use to talk to this process itself.
func forwarded() []os.Signal {
	var all []os.Signal
	for s := syscall.Signal(1); s <= 64; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, 32, 33:
		default:
			all = append(all, s)
		}
	}
	return all
}

// closeOwnStreams points this process's own streams at /dev/null, so that they close when the command closes them.
func closeOwnStreams() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = syscall.Dup3(int(null.Fd()), fd, 0)
	}
	_ = null.Close()
}

// reapUntil reaps children until main ends and returns its exit code. With no main it reaps for ever.
func reapUntil(main int) int {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			awaitChild()
		case err != nil || pid != main:
		case ws.Signaled():
			return 128 + int(ws.Signal())
		default:
			return ws.ExitStatus()
		}
	}
}

// awaitChild blocks until a child ends, for when there is none yet.
func awaitChild() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
		<-ended
	}
}

// killEverything ends all that runs below this process. As the first process of a PID namespace its end does that.
func killEverything() {
	if os.Getpid() != 1 {
		killDescendants()
	}
}

// killDescendants kills until no child is left. Children of the killed become children of this process, a subreaper,
// so that none escapes by losing its parent.
func killDescendants() {
	for {
		for _, p := range proc.ReadAll().Below(os.Getpid()) {
			_ = syscall.Kill(p.Pid, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}
