package cli

import "syscall"

// endRun is sent by nobody: there is no local cluster to end.
const endRun = syscall.Signal(-1)

// outputLost is never true: Windows sends no SIGPIPE.
func outputLost() bool { return false }
