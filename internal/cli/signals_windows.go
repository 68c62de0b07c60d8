package cli

import "syscall"

// endCluster is sent by nobody: there is no local cluster to end.
const endCluster = syscall.Signal(-1)

// outputLost is never true: Windows sends no SIGPIPE.
func outputLost() bool { return false }
