package procrun

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new terminal. Ours can be read with a deadline, which rules out every way that
// asks the file for its descriptor.
func openTerminal() (ours, theirs *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	ours = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		_ = ours.Close()
		return nil, nil, fmt.Errorf("unlocking a terminal: %w", err)
	}
	// By number, not by path: the terminal's name may mean another one in this view of the file system.
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		_ = ours.Close()
		return nil, nil, fmt.Errorf("opening the other end of a terminal: %w", errno)
	}
	return ours, os.NewFile(peer, "terminal"), nil
}

// setSize sets a terminal's size to that of the window it is shown in.
func setSize(terminal *os.File, width, height uint16) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
	})
	if err != nil {
		return err
	}
	return failed
}
