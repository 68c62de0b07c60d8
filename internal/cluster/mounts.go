package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// detachMounts removes the mounts below a folder from this process's mount namespace. A further node is started with a copy of the
// cluster's mounts, those of the first node's pods among them, which it would keep from being freed.
func detachMounts(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mounts: %w", err)
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for _, line := range slices.Backward(strings.Split(string(table), "\n")) {
		fields := strings.Fields(line) // ID, parent, device, root, mount point, …
		if len(fields) > 4 && strings.HasPrefix(unescape.Replace(fields[4]), dir+"/") {
			_ = unix.Unmount(unescape.Replace(fields[4]), unix.MNT_DETACH)
		}
	}
	return nil
}
