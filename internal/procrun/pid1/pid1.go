// Package pid1 is the first process of every container: a supervisor that is this same executable, started again under
// another name. It builds what the container sees of the file system (view.go), starts the container's command
// (start.go), passes signals on to it, reaps every orphan, and ends with the command's exit code, or 128 plus the
// signal that ended it (supervise.go). As it is process 1 of the container's PID namespace, its own end takes
// everything with it that the command left behind.
//
// The runtime talks to it over two pipes. On the control pipe comes one Spec, after the runtime has put the process
// where it belongs; the pipe then stays open, and its closing means "end everything at once". On the status pipe goes
// one Failure if the command could not be started; its closing without one means that the command runs.
//
// Go initialises packages by dependency and then by path, so that this init runs, and never returns, before those of
// the large packages the executable is otherwise made of. For that the package imports only those of the standard
// library that are themselves initialised early: path/filepath, for one, comes after all of Kubernetes.
package pid1

import (
	"encoding/json"
	"os"
	"syscall"
	"unsafe"
)

// Name is the name (argv[0]) under which the executable is a supervisor.
const Name = "trainyard-init"

// Environ is the environment of the supervisor itself, which keeps it small: the command's comes with the Spec.
var Environ = []string{"GOMAXPROCS=1", "GOGC=20", "GODEBUG=asyncpreemptoff=1"}

const (
	controlFD = 3
	statusFD  = 4
)

// A Spec says what the supervisor is to run and how.
type Spec struct {
	Args []string // the command; none: only reap orphans, as the first process of a shared PID namespace
	Env  []string
	Dir  string
	User User
	View *View // the file system to build; nil: the one that is there
	TTY  bool  // standard input is a terminal, to be the controlling one

	NoNewPrivs  bool
	OOMScoreAdj int

	// KillOrphans says that what the command leaves behind ends with it although this is not the first process of the
	// PID namespace.
	KillOrphans bool
}

// User is the user that the command runs as.
type User struct {
	UID, GID uint32
	Groups   []uint32
	// Mapped says that the command sees itself as UID and GID through a user namespace of its own, without becoming
	// another user: an ordinary user can become nobody else.
	Mapped bool
}

// Failure is why a command did not start.
type Failure struct {
	ExitCode int // as a shell would report it: 127 not found, 126 not executable, 128 anything else
	Message  string
}

// keepFromCommand keeps open files from the command: the pipes, and what the program that started the runtime left open.
func keepFromCommand() {
	const sysCloseRange, closeOnExec = 436, 4
	if _, _, errno := syscall.RawSyscall(sysCloseRange, controlFD, ^uintptr(0)>>33, closeOnExec); errno != 0 {
		syscall.CloseOnExec(controlFD)
		syscall.CloseOnExec(statusFD)
	}
}

func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	_ = prctl(prSetName, uintptr(unsafe.Pointer(unsafe.StringData(Name+"\x00"))))
	keepFromCommand()
	_ = syscall.SetNonblock(controlFD, true) // pollable: a blocking read would cost a thread
	control, status := os.NewFile(controlFD, "control"), os.NewFile(statusFD, "status")
	var spec Spec
	if err := json.NewDecoder(control).Decode(&spec); err != nil {
		os.Exit(128) // the runtime ended before it said what to do
	}
	os.Exit(supervise(spec, control, status))
}
