//go:build linux

package recorder

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/record"
)

// ownMounts is the variable that says that the test runs where it may mount.
const ownMounts = "TRAINYARD_TEST_OWN_MOUNTS"

// inOwnMounts runs the test again in a process that may mount, and reports whether this is that process.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	self := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: self(os.Getuid()), GidMappings: self(os.Getgid())}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// TestAFullDiskLosesNothing fills the disk of the records while a job writes. When there is room again, every line is there once.
func TestAFullDiskLosesNothing(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	for _, rotated := range []bool{false, true} {
		t.Run(fmt.Sprint("rotated meanwhile: ", rotated), func(t *testing.T) { fillDisk(t, rotated) })
	}
}

func fillDisk(t *testing.T, rotated bool) {
	s := newSite(t)
	disk := t.TempDir()
	mount := func(flags uintptr, size string) {
		t.Helper()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", flags, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
	mount(0, "256k")
	defer func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }()
	s.store = record.Open(disk)
	s.restart()
	c := s.container()
	s.sees(workerPod("1", corev1.PodRunning))
	full := 0
	for i := range 20 {
		s.writes(c, 500)
		if i == 10 {
			if rotated {
				s.writes(c, 30_000)
				s.rotate(c, 100)
				mount(syscall.MS_REMOUNT, "900k") // there is room for some of it
			}
			s.restart()
			s.sees(workerPod("1", corev1.PodRunning))
		}
		s.now = s.now.Add(saveInterval)
		s.r.step(s.now)
		if s.r.problem != "" {
			full++
			if !strings.Contains(s.r.problem, "no space left on device") {
				t.Fatal(s.r.problem)
			}
		}
	}
	if full < 5 {
		t.Fatalf("the disk was full %d times only", full)
	}
	mount(syscall.MS_REMOUNT, "64m")
	s.r.podChanged(workerPod("2", corev1.PodSucceeded), false)
	for range 5 {
		s.step(scanInterval)
	}
	s.hasAllLines(c)
}
