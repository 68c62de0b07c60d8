package procrun

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onOwnThread runs f on an operating system thread that ends with it, so that f may move the thread into other
// namespaces and start a process or open a socket there.
func onOwnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread is what /proc/self shows and cannot end: hold it while another does the work.
			defer runtime.UnlockOSThread()
			done <- onOwnThread(f)
			return
		}
		done <- f() // never unlocked: Go then ends the thread
	}()
	return <-done
}

// enter moves the calling thread into namespaces. A nil one stands for the one the thread is in.
func enter(namespaces ...*os.File) error {
	for _, ns := range namespaces {
		if ns == nil {
			continue
		}
		if err := unix.Setns(int(ns.Fd()), 0); err != nil {
			return fmt.Errorf("entering %s: %w", ns.Name(), err)
		}
	}
	return nil
}

// openNamespace opens a namespace of the calling thread, "net" for example, which holds it for as long as it is open.
func openNamespace(kind string) (*os.File, error) {
	return os.Open("/proc/thread-self/ns/" + kind)
}

// duplicate opens the same namespaces once more, so that they can be used while others close theirs.
func duplicate(namespaces ...*os.File) ([]*os.File, error) {
	copies := make([]*os.File, len(namespaces))
	for i, ns := range namespaces {
		if ns == nil {
			continue
		}
		fd, err := unix.FcntlInt(ns.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeAll(copies)
			return nil, fmt.Errorf("holding %s: %w", ns.Name(), err)
		}
		copies[i] = os.NewFile(uintptr(fd), ns.Name())
	}
	return copies, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		if file != nil {
			_ = file.Close()
		}
	}
}
