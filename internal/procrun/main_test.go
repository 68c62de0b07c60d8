package procrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ordinary is the user as whom the tests run a second time when they are started as root.
const ordinary = 65534

// TestMain runs the tests in an enclave as the local cluster makes one: first of a PID namespace, with mounts and
// network of its own. Started as root they run twice, as root and as an ordinary user.
func TestMain(m *testing.M) {
	switch os.Getenv("PROCRUN_TEST") {
	case "enclave":
		if err := furnish(); err != nil {
			fmt.Fprintln(os.Stderr, "furnishing the enclave:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	case "ordinary":
		os.Exit(enclave(syscall.CLONE_NEWUSER))
	}
	if os.Getuid() != 0 {
		os.Exit(enclave(syscall.CLONE_NEWUSER))
	}
	code := enclave(0)
	fmt.Println("=== as an ordinary user")
	os.Exit(max(code, again("ordinary", &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary},
	})))
}

// enclave runs this test binary in new namespaces.
func enclave(flags uintptr) int {
	sys := &syscall.SysProcAttr{
		Cloneflags: flags | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	if flags&syscall.CLONE_NEWUSER != 0 {
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		if err := os.Setenv("PROCRUN_UID", fmt.Sprint(os.Getuid())); err != nil {
			panic(err)
		}
	}
	return again("enclave", sys)
}

func again(as string, sys *syscall.SysProcAttr) int {
	args := os.Args[1:]
	if as == "ordinary" {
		// The go command keeps its notes where only root can write.
		args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") })
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "PROCRUN_TEST="+as)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdin, os.Stdout, os.Stderr, sys
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "starting the tests again:", err)
		return 1
	}
	return 0
}

// furnish makes the new namespaces usable.
func furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return loopbackUp()
}

// rootless tells whether this is the run as an ordinary user.
func rootless() bool { return os.Getenv("PROCRUN_UID") != "" }
