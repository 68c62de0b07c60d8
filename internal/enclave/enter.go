package enclave

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Enter sets up the mounts and the loopback interface of the enclave. The program that Start ran calls it before anything else.
func Enter() error {
	// Without this, mounts made here would show up on the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return unavailable(fmt.Errorf("making mounts private: %w", err))
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return unavailable(fmt.Errorf("mounting /proc: %w", err))
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return unavailable(fmt.Errorf("bringing the loopback interface up: %w", err))
	}
	return nil
}

// Outside is the user that started the enclave, as the machine sees them; ok is false where no user namespace was needed.
func Outside() (uid, gid int, ok bool) {
	var inside, size int
	uid, gid = os.Getuid(), os.Getgid()
	for file, id := range map[string]*int{"/proc/self/uid_map": &uid, "/proc/self/gid_map": &gid} {
		content, err := os.ReadFile(file)
		if err != nil {
			return uid, gid, false
		}
		if _, err := fmt.Sscan(string(content), &inside, id, &size); err != nil || size != 1 {
			return uid, gid, false
		}
	}
	return uid, gid, true
}
