package ui

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// stranger reports whether a connection from an address of this machine was made by another person than the one who runs this process, or root. The
// link is an argument of the program that opens the browser, and on a shared machine everybody can see the arguments of programs.
func stranger(address string) bool {
	sockets, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false // this system does not tell
	}
	owner, ok := ownerOf(string(sockets), address)
	return ok && owner != 0 && owner != os.Getuid()
}

// ownerOf is the user who opened the socket with a local address, by the kernel's table of sockets. It is not ok if the table does not have it.
func ownerOf(sockets, address string) (uid int, ok bool) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().Is4() {
		return 0, false
	}
	ip := at.Addr().Unmap().As4()
	local := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], at.Port()) // as a little-endian machine has it
	for line := range strings.Lines(sockets) {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid
		if fields := strings.Fields(line); len(fields) > 7 && fields[1] == local {
			uid, err = strconv.Atoi(fields[7])
			return uid, err == nil
		}
	}
	return 0, false
}
