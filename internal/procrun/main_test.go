package procrun

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ordinary is the user as whom the tests run a second time when they are started as root.
const ordinary = 65534

// TestMain runs the tests in an enclave as the local cluster makes one: first of a PID namespace, with mounts and
// network of its own. Started as root they run twice, as root and as an ordinary user.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && acts[os.Args[1]] != nil {
		acts[os.Args[1]](os.Args[2:])
		return
	}
	switch os.Getenv("PROCRUN_TEST") {
	case "enclave":
		if err := furnish(); err != nil {
			fmt.Fprintln(os.Stderr, "furnishing the enclave:", err)
			os.Exit(1)
		}
		dir, err := os.MkdirTemp("", "procrun")
		if err == nil {
			binary = dir + "/acts"
			err = copySelf(binary)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "copying the test binary:", err)
			os.Exit(1)
		}
		code := m.Run()
		_ = os.RemoveAll(dir)
		os.Exit(code)
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

// acts are what containers of the tests can run besides a shell's commands.
var acts = map[string]func(args []string){
	"answer": func(args []string) {
		listener, err := net.Listen("tcp", ":"+args[0])
		if err != nil {
			panic(err)
		}
		fmt.Println("listening")
		for {
			conn, err := listener.Accept()
			if err != nil {
				panic(err)
			}
			_, _ = conn.Write([]byte(args[1]))
			_ = conn.Close()
		}
	},
	"take": func(args []string) {
		size, err := strconv.Atoi(args[0])
		if err != nil {
			panic(err)
		}
		if _, err := unix.Mmap(-1, 0, size, unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE); err != nil {
			panic(err)
		}
		fmt.Println("taken")
		<-time.After(time.Hour)
	},
	"hear": func(args []string) {
		conn, err := net.DialTimeout("tcp", args[0], testTimeout)
		if err != nil {
			panic(err)
		}
		text, err := readAll(conn)
		if err != nil {
			panic(err)
		}
		fmt.Println(text)
	},
}

// binary is a copy of this test binary that everybody can run.
var binary string

func copySelf(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
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

// rootless reports whether this is the run as an ordinary user.
func rootless() bool { return os.Getenv("PROCRUN_UID") != "" }
