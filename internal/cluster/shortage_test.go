package cluster

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The machine's own limit is not changed by a test.
func TestTooFewInotifyInstancesAreNamed(t *testing.T) {
	left := 3
	note := inotifyNote(func() (int, error) {
		if left--; left < 0 {
			return -1, unix.EMFILE
		}
		return openInotify()
	})
	if !strings.Contains(note, "`sysctl fs.inotify.max_user_instances=512`") {
		t.Errorf("with 3 instances left it says %q", note)
	}
	if note := inotifyNote(func() (int, error) { return -1, unix.ENOSYS }); note != "" {
		t.Errorf("without inotify it says %q", note)
	}
}

func TestNoPodGetsTheAddressOfTheMachine(t *testing.T) {
	for _, spec := range (Options{Nodes: MaxNodes}).nodes() {
		for _, taken := range []string{hostAddress.String(), gateway.String(), spec.address().String()} {
			if block := spec.pods(); block.Contains(netip.MustParseAddr(taken)) || !podRange.Overlaps(block) {
				t.Errorf("pods of %s get addresses of %s, and %s is one", spec.Name, block, taken)
			}
		}
	}
}

// A start that fails leaves no sockets open: a program may try again for ever.
func TestAFailedStartLeavesNoSockets(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close() // its port cannot be handed over
	before := openFiles(t)
	for range 10 {
		if _, _, _, err := runEnclave(&home{listener: listener}); err == nil {
			t.Fatal("it has started")
		}
	}
	if after := openFiles(t); after > before+5 { // other tests may open some meanwhile
		t.Errorf("%d files were open before, and %d are after ten failures", before, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
