package pid1

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const (
	prSetName           = 15
	prSetChildSubreaper = 36
	prSetNoNewPrivs     = 38
)

func prctl(option, value uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, value, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("setting process attribute %d: %w", option, errno)
	}
	return nil
}

// start runs the command as the user it is for, in a session of its own, and returns its process ID.
func start(spec Spec) (int, error) {
	if err := checkDir(spec.Dir); err != nil {
		return 0, err
	}
	path, err := lookPath(spec.Args[0], spec.Dir, spec.Env)
	if err != nil {
		return 0, err
	}
	if spec.NoNewPrivs {
		if err := prctl(prSetNoNewPrivs, 1); err != nil {
			return 0, err
		}
	}
	syscall.Umask(0o022)
	// Lowering the score takes privilege an ordinary user lacks; the command then keeps the one it inherits.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(spec.OOMScoreAdj)), 0)
	pid, err := syscall.ForkExec(path, spec.Args, &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: []uintptr{0, 1, 2},
		Sys:   spec.User.attributes(spec.TTY),
	})
	if err != nil {
		return 0, &Failure{ExitCode: 126, Message: fmt.Sprintf("exec: %q: %v", spec.Args[0], err)}
	}
	return pid, nil
}

func (u User) attributes(tty bool) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: tty}
	if u.Mapped {
		sys.Cloneflags = syscall.CLONE_NEWUSER
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(u.UID), HostID: os.Getuid(), Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(u.GID), HostID: os.Getgid(), Size: 1}}
		return sys
	}
	sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	return sys
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("working directory %q does not exist", dir)
	case err != nil:
		return fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("working directory %q is not a directory", dir)
	}
	return nil
}

// lookPath finds the command as the container's own environment would.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := from(dir, name)
		return path, executable(name, path)
	}
	for _, entry := range env {
		list, isPath := strings.CutPrefix(entry, "PATH=")
		if !isPath {
			continue
		}
		for folder := range strings.SplitSeq(list, ":") {
			if path := join(from(dir, folder), name); executable(name, path) == nil {
				return path, nil
			}
		}
	}
	return "", &Failure{ExitCode: 127, Message: fmt.Sprintf("exec: %q: not found in PATH", name)}
}

func executable(name, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err // the path is in the sentence already
		}
		return &Failure{ExitCode: 127, Message: fmt.Sprintf("exec: %q: %v", name, err)}
	case info.IsDir():
		return &Failure{ExitCode: 126, Message: fmt.Sprintf("exec: %q: is a directory", name)}
	case info.Mode()&0o111 == 0:
		return &Failure{ExitCode: 126, Message: fmt.Sprintf("exec: %q: permission denied", name)}
	}
	return nil
}

// Error is the sentence for people.
func (f *Failure) Error() string { return f.Message }
