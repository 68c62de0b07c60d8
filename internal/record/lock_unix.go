//go:build unix

package record

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock of a file, which goes when the file is closed.
func lockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX) }
