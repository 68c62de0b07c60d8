package procrun

import (
	"net/netip"
	"time"
)

// Config says where a Runtime keeps its state and what it gives to containers.
type Config struct {
	// Root is the directory of the records and of what sandboxes need on disk. It outlives the Runtime.
	Root string
	// WorkDir is the working directory of containers that name none.
	WorkDir string
	// Env is what every container inherits, before its own variables.
	Env []string

	// Bridge is the name of the bridge that joins the pods. It is created with Node as its address.
	Bridge string
	// Pods is the range of pod addresses.
	Pods netip.Prefix
	// Node is the address of the machine in the pod network.
	Node netip.Addr
	// Gateway is where pods send what is neither for a pod nor for a Service. Unset means they have no default route.
	Gateway netip.Addr
	// Services is the range of Service addresses, which pods reach through Node. Unset means none.
	Services netip.Prefix

	// User is the user that containers see themselves as where the machine's user is an ordinary one. Nil means root.
	User *User
	// Cgroup is the name of the control group that holds those of the containers. Empty means no limits.
	Cgroup string
	// GPUs are the machine's GPUs. Where there are any, a container that was assigned none sees none.
	GPUs []string

	// LogLimit is the size in bytes at which a container is blocked until its log is reopened. Zero means none.
	LogLimit int64

	// Grace is what running containers get between SIGTERM and SIGKILL when the Runtime closes. The default is 2 s.
	Grace time.Duration
}

// User is an ordinary user, by the IDs outside of the enclave.
type User struct {
	UID, GID uint32
}

func (c *Config) grace() time.Duration {
	if c.Grace == 0 {
		return 2 * time.Second
	}
	return c.Grace
}
