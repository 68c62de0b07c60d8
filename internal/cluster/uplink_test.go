package cluster

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A dial that nobody answers ends after its timeout: the kernel's own is two minutes, in which it would hold one of pendingDials.
func TestADialThatNobodyAnswersEnds(t *testing.T) {
	address, ended := silentAddress(t), make(chan bool)
	go func() {
		conn, silent, err := dialOutside(address, time.Millisecond)
		if err == nil {
			_ = conn.Close()
		}
		ended <- silent && err != nil
	}()
	select {
	case silent := <-ended:
		if !silent {
			t.Error("somebody answers")
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
	if _, silent, err := dialOutside("127.0.0.1:1", time.Minute); err == nil || silent {
		t.Errorf("a refused connection: silent %t, %v", silent, err)
	}
}

// silentAddress is an address where the kernel drops every request: its queue of connections is full, and nobody accepts one.
func silentAddress(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}).String()
	for {
		conn, err := net.DialTimeout("tcp4", address, 200*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}

// A kernel with ipv6.disable=1 cannot be had in a test.
func TestIPv6IsDisabledWhereThereIsAny(t *testing.T) {
	dir := t.TempDir()
	if err := disableIPv6(dir, "uplink-out"); err != nil {
		t.Errorf("without IPv6: %v", err)
	}
	file := filepath.Join(dir, "uplink-out", "disable_ipv6")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := disableIPv6(dir, "uplink-out"); err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(file); string(content) != "1" {
		t.Errorf("it is %q", content)
	}
}
