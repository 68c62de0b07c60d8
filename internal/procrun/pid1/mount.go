package pid1

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// The system calls below are younger than the syscall package; their numbers are the same on every architecture.
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysMountSetattr = 442

	atFDCWD       = -100
	atNoAutomount = 0x800
	atEmptyPath   = 0x1000
	atRecursive   = 0x8000
	openTreeClone = 1
	mountFromFD   = 4 // MOVE_MOUNT_F_EMPTY_PATH
	attrReadOnly  = 1 // MOUNT_ATTR_RDONLY
)

// A tree is a copy of a mount's source that is not attached anywhere yet.
type tree struct {
	fd    int
	isDir bool
	// readOnly says that it must be made read-only when it is attached, recursive with all mounts below it.
	readOnly, recursive bool
}

func pickUp(m Mount) (tree, error) {
	info, err := os.Stat(m.Source)
	if err != nil {
		return tree{}, err
	}
	fd, err := openTree(m.Source, 0)
	if err != nil {
		return tree{}, fmt.Errorf("copying the mount: %w", err)
	}
	t := tree{fd: fd, isDir: info.IsDir()}
	if m.ReadOnly {
		err := mountSetattr(t.fd, "", m.RecursiveReadOnly)
		if errors.Is(err, syscall.ENOSYS) {
			t.readOnly, t.recursive = true, m.RecursiveReadOnly
		} else if err != nil {
			return tree{}, fmt.Errorf("making it read-only: %w", err)
		}
	}
	return t, nil
}

// openTree copies what is mounted at a path and below it.
func openTree(path string, flags uintptr) (int, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	at := atFDCWD
	fd, _, errno := syscall.Syscall(sysOpenTree, uintptr(at), uintptr(unsafe.Pointer(name)), openTreeClone|atRecursive|syscall.O_CLOEXEC|flags)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// CopiesMounts reports whether the kernel can copy mounts, as Linux does since 5.2.
func CopiesMounts() bool {
	_, _, errno := syscall.Syscall(sysOpenTree, ^uintptr(0), uintptr(unsafe.Pointer(new(byte))), 0)
	return errno != syscall.ENOSYS
}

// bind shows the tree at a path at another one. An automount that nobody has used yet stays as it is: its server may not answer.
func bind(source, target string) error {
	fd, err := openTree(source, atNoAutomount)
	if err != nil {
		return err
	}
	t := tree{fd: fd}
	defer t.close()
	return t.attach(target)
}

func (t tree) attach(target string) error {
	empty, to := new(byte), append([]byte(target), 0)
	at := atFDCWD
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(t.fd), uintptr(unsafe.Pointer(empty)),
		uintptr(at), uintptr(unsafe.Pointer(&to[0])), mountFromFD, 0)
	if errno != 0 {
		return errno
	}
	if t.readOnly {
		return remountReadOnly(target, t.recursive)
	}
	return nil
}

func (t tree) close() { _ = syscall.Close(t.fd) }

func setReadOnly(path string, recursive bool) error {
	err := mountSetattr(atFDCWD, path, recursive)
	if errors.Is(err, syscall.ENOSYS) {
		return remountReadOnly(path, recursive)
	}
	return err
}

// mountSetattr is a system call that Linux has since 5.12. A test replaces it.
var mountSetattr = callMountSetattr

func callMountSetattr(dir int, path string, recursive bool) error {
	attr := struct{ set, clear, propagation, userNS uint64 }{set: attrReadOnly}
	name, flags := append([]byte(path), 0), uintptr(0)
	if path == "" {
		flags |= atEmptyPath
	}
	if recursive {
		flags |= atRecursive
	}
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), flags,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// kernelFileSystems mounts the file systems that show the container's own namespaces. A new one is refused where the
// machine's is partly hidden; the machine's /sys then has to do, while a foreign /proc would be useless.
func (v *View) kernelFileSystems() error {
	if err := syscall.Mount("sysfs", staging, "sysfs", v.flagsOf("/sys"), ""); err == nil {
		_ = syscall.Mount("/sys/fs/cgroup", staging+"/fs/cgroup", "", syscall.MS_BIND|syscall.MS_REC, "")
		if err := syscall.Mount(staging, "/sys", "", syscall.MS_MOVE, ""); err != nil {
			return fmt.Errorf("mounting /sys: %w", err)
		}
	}
	if v.Proc {
		if err := syscall.Mount("proc", "/proc", "proc", v.flagsOf("/proc"), ""); err != nil {
			return fmt.Errorf("mounting /proc: %w", err)
		}
	}
	return nil
}

// flagsOf returns the flags of the machine's mount at path; a new one of the same kind must not allow more.
func (v *View) flagsOf(path string) uintptr {
	var st syscall.Statfs_t
	if syscall.Statfs(path, &st) != nil {
		return 0
	}
	flags := uintptr(st.Flags) & (syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC)
	if v.ReadOnly { // our own doing
		flags &^= syscall.MS_RDONLY
	}
	return flags
}
