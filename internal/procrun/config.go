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
	// Pods is the range of pod addresses, all of which are reached through the bridge.
	Pods netip.Prefix
	// Own is the part of Pods that this runtime's pods get their addresses from. Unset means all of it.
	Own netip.Prefix
	// Node is the address of the machine in the pod network.
	Node netip.Addr
	// Gateway is where pods send what is neither for a pod nor for a Service. Unset means they have no default route.
	Gateway netip.Addr
	// Services is the range of Service addresses, which pods reach through ServiceGateway. Unset means none.
	Services netip.Prefix
	// ServiceGateway is the address that serves Services. Unset means Node.
	ServiceGateway netip.Addr

	// User is the user that containers see themselves as where the machine's user is an ordinary one. Nil means root.
	User *User
	// Cgroup is the name of the control group that holds those of the containers. Empty means no limits.
	Cgroup string
	// GPUs are the machine's GPUs. Where there are any, a container that was assigned none sees none.
	GPUs []string

	// LogLimit is the size in bytes at which a container is blocked until its log is reopened. Zero means none.
	LogLimit int64

	// GraceLimit limits the grace period of running containers when the Runtime closes. Zero means that each has all of its pod's.
	GraceLimit time.Duration
}

// User is an ordinary user, by the IDs outside of the enclave.
type User struct {
	UID, GID uint32
}

func (c *Config) own() netip.Prefix {
	if c.Own.IsValid() {
		return c.Own.Masked()
	}
	return c.Pods.Masked()
}

func (c *Config) serviceGateway() netip.Addr {
	if c.ServiceGateway.IsValid() {
		return c.ServiceGateway
	}
	return c.Node
}
