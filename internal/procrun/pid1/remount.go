package pid1

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// remountReadOnly makes a mount read-only on Linux before 5.12, and with recursive all mounts below it, one by one. One of them that
// cannot be reached stays as it is: nobody can write to it.
func remountReadOnly(path string, recursive bool) error {
	points := []string{path}
	if recursive {
		below, err := mountsBelow(path)
		if err != nil {
			return err
		}
		points = append(points, below...)
	}
	for i, point := range points {
		var st syscall.Statfs_t
		err := syscall.Statfs(point, &st)
		if err == nil {
			err = syscall.Mount("", point, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|keptFlags(st.Flags), "")
		}
		if err != nil && (i == 0 || !inaccessible(err)) {
			return fmt.Errorf("remounting %s: %w", point, err)
		}
	}
	return nil
}

// keptFlags are the flags of a mount that a remount must repeat. An ordinary user may not remove them.
func keptFlags(statfs int64) uintptr {
	const relatime = 0x1000 // ST_RELATIME; statfs and mount number this one differently
	flags := uintptr(statfs) & (syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME)
	if statfs&relatime != 0 {
		flags |= syscall.MS_RELATIME
	}
	return flags
}

// mountsBelow lists the mount points below a path.
func mountsBelow(path string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for _, line := range strings.Split(string(table), "\n") {
		fields := strings.Fields(line) // ID, parent, device, root, mount point, …
		if len(fields) < 5 {
			continue
		}
		if point := unescape.Replace(fields[4]); point != path && strings.HasPrefix(point, strings.TrimSuffix(path, "/")+"/") {
			points = append(points, point)
		}
	}
	return points, nil
}
