package pid1

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// directoryApart names the directory of a test whose process has mounts of its own.
const directoryApart = "PID1_TEST_DIRECTORY"

// apart runs a test again, in a process with mounts of its own. There it returns a directory for the test.
func apart(t *testing.T) (dir string, inside bool) {
	t.Helper()
	if dir = os.Getenv(directoryApart); dir != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
			t.Fatal(err)
		}
		return dir, true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), directoryApart+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if output, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()) {
		t.Errorf("%v:\n%s", err, output)
	}
	return "", false
}

// Linux before 5.12 cannot change a tree of mounts at once.
func TestReadOnlyOnAnOldKernel(t *testing.T) {
	dir, inside := apart(t)
	if !inside {
		return
	}
	mountSetattr = func(int, string, bool) error { return syscall.ENOSYS }
	volume, below := dir+"/a volume", dir+"/a volume/below"
	for _, folder := range []string{volume, dir + "/read-only", dir + "/all-read-only"} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", below, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, ""); err != nil {
		t.Fatal(err)
	}
	view := &View{Mounts: []Mount{
		{Source: volume, Target: dir + "/read-only", ReadOnly: true},
		{Source: volume, Target: dir + "/all-read-only", ReadOnly: true, RecursiveReadOnly: true},
		{Source: volume, Target: dir + "/missing/writable"},
	}}
	if err := view.Build(); err != nil {
		t.Fatal(err)
	}
	for path, writable := range map[string]bool{
		"read-only": false, "read-only/below": true, "all-read-only": false, "all-read-only/below": false, "missing/writable": true, "missing": false,
	} {
		err := os.WriteFile(dir+"/"+path+"/new", nil, 0o600)
		if writable && err != nil || !writable && !errors.Is(err, syscall.EROFS) {
			t.Errorf("writing to %s: %v", path, err)
		}
	}
}

func TestReadOnlyRootOnAnOldKernel(t *testing.T) {
	dir, inside := apart(t)
	if !inside {
		return
	}
	mountSetattr = func(int, string, bool) error { return syscall.ENOSYS }
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/volume", 0o755); err != nil {
		t.Fatal(err)
	}
	view := &View{ReadOnly: true, Mounts: []Mount{{Source: dir + "/volume", Target: dir + "/volume"}}}
	if err := view.Build(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/new", nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("writing below a mount of the machine: %v", err)
	}
	if err := os.WriteFile(dir+"/volume/new", nil, 0o600); err != nil {
		t.Errorf("writing to the volume: %v", err)
	}
}

// A directory next to a mount point is one that is mounted on demand, by a server that never answers.
func TestAHungAutomountIsLeftAlone(t *testing.T) {
	if os.Getuid() != 0 { // the kernel lets only root make one
		return
	}
	dir, inside := apart(t)
	if !inside {
		return
	}
	if err := os.Mkdir(dir+"/hung", 0o755); err != nil {
		t.Fatal(err)
	}
	requests, daemon, err := os.Pipe() // nobody reads the kernel's requests
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Close() //nolint:errcheck // it is never read
	// The daemon's own processes, by their group, do not wait for it: let it be another group's.
	options := fmt.Sprintf("fd=%d,pgrp=%d,minproto=5,maxproto=5,direct", daemon.Fd(), syscall.Getppid())
	if err := syscall.Mount("test", dir+"/hung", "autofs", 0, options); err != nil {
		t.Fatal(err)
	}
	view := &View{Mounts: []Mount{{Source: "/tmp", Target: dir + "/new"}}}
	if err := view.Build(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v (%v)", entries, err)
	}
}
