// Package procrun is a container runtime that runs containers as processes of this machine. It implements the
// interfaces through which kubelet drives a runtime (CRI), in process: no socket, no image, no container engine. The
// machine with what is installed on it is the image of every container; what a container gets of its own is its
// processes, its network and its mounts.
//
// A pod sandbox (sandbox.go) is a set of namespaces held open by file descriptors, joined to the pod network by a
// bridge (network.go). A container (container.go) is a command under a supervisor, package pid1, which is this
// executable started again; the program must therefore link this package, and nothing else is needed. Output goes
// to kubelet's log files (log.go). exec, attach and port-forward are served by kubelet's own streaming library
// (streaming.go). Records on disk (record.go) let the next start know what ran and how it ended.
//
// What a container writes goes to the machine's real files, but for three places: volumes, which are where kubelet has
// them; /run and /dev, where it may be in memory only; and a directory that had to be mirrored because a mount point in it
// is missing on the machine, in which no new file can be made at all. Containers are not a protection against what runs in
// them: of a security context, user and groups, no_new_privs and the read-only root are honoured, capabilities and
// profiles are not. Mounts are private: a container's later mounts are not seen outside of it, nor the machine's in it.
//
// The surroundings are expected to be an enclave: the calling process is the first of its own PID namespace, in a
// private mount namespace and a network namespace of its own, and looks like root there. Whatever is created here
// therefore ends with the process, however it ends.
package procrun
