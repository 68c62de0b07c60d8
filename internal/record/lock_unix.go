//go:build unix

package record

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock of a file, which goes when the file is closed.
func lockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX) }

// syncDir makes the names in a directory safe when the machine stops. Some file systems do this by themselves and refuse the call.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	if err = dir.Sync(); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
