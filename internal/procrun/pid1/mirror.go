package pid1

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// staging is an existing directory on which a file system can be prepared before it is moved to its place. It is one of
// /proc's, as no volume ever covers it.
const staging = "/proc/tty"

// unneeded reports whether a device is one that no container needs and that would only make a mirrored /dev large.
func unneeded(device string) bool {
	for _, kind := range []string{"tty", "vcs", "loop", "ram"} {
		if strings.HasPrefix(device, kind) && device != "tty" && device != "loop-control" {
			return true
		}
	}
	return false
}

// mirror covers dir with a file system in memory that shows the same entries, each bound to the original, so that
// entries can be added which the machine lacks. Unless dir is volatile anyway the mirror becomes read-only in the
// end: a file written there would be lost without a word otherwise.
func (v *View) mirror(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", staging, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	// Unbindable while it is filled: a copy of a directory above it must not hold the half-made mirror itself.
	if err := syscall.Mount("", staging, "", syscall.MS_UNBINDABLE, ""); err != nil {
		return err
	}
	for _, entry := range entries {
		if dir == "/dev" && unneeded(entry.Name()) {
			continue
		}
		if err := show(dir, entry); err != nil && !inaccessible(err) {
			return err
		}
	}
	if err := os.Chmod(staging, info.Mode()); err != nil {
		return err
	}
	v.made[dir] = true
	if v.ReadOnly || !volatile(dir) {
		v.mirrors = append(v.mirrors, dir)
	}
	return moveOnto(dir)
}

// inaccessible reports whether an entry could not be shown because it is gone or nobody can get at it: the mirror then has
// an empty one.
func inaccessible(err error) bool {
	for _, reason := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTCONN, syscall.EIO, syscall.ESTALE, syscall.ENODEV} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// show makes the entry of dir appear on staging.
func show(dir string, entry fs.DirEntry) error {
	original, image := join(dir, entry.Name()), join(staging, entry.Name())
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(original)
		if err != nil {
			return err
		}
		return os.Symlink(target, image)
	case original == "/dev/ptmx":
		// The device finds its terminals next to itself, which a bind mount of a single file cannot offer.
		return os.Symlink("pts/ptmx", image)
	case entry.IsDir():
		if err := os.Mkdir(image, 0o755); err != nil {
			return err
		}
	default:
		file, err := os.Create(image)
		if err != nil {
			return err
		}
		_ = file.Close()
	}
	return bind(original, image)
}

// moveOnto moves what is on staging over dir. Nothing can cover the root: it is exchanged.
func moveOnto(dir string) error {
	if err := syscall.Mount("", staging, "", syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if dir != "/" {
		return syscall.Mount(staging, dir, "", syscall.MS_MOVE, "")
	}
	if err := os.Chdir(staging); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}

// volatile reports whether what is written to dir is gone with the machine's next start anyway.
func volatile(dir string) bool {
	const tmpfs = 0x01021994
	var st syscall.Statfs_t
	return dir == "/run" || syscall.Statfs(dir, &st) == nil && st.Type == tmpfs
}
