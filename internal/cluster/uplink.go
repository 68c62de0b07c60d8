package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/internal/procrun"
)

// The uplink is how pods reach what the machine reaches. The parent process, which lives in the machine's network, runs a
// TCP/IP stack of its own and makes the pods' connections in their place; packets travel between it and the enclave's
// bridge over a socket. It needs no rights, no firewall rule and no forwarding on the machine, is the same for root and for
// a user, and leaves nothing behind.

// newUplink makes the two ends of the socket: ours, and the enclave's.
func newUplink() (ours net.Conn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making the uplink's socket: %w", err)
	}
	if ours, err = fileConn(pair[0]); err != nil {
		_ = unix.Close(pair[1])
		return nil, nil, err
	}
	return ours, os.NewFile(uintptr(pair[1]), "uplink"), nil
}

// attachUplink joins the enclave's end of the socket to the bridge: a veth pair of which one end is a port of the bridge
// and the other is read and written as raw packets.
func attachUplink(socket int) error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("finding the bridge: %w", err)
	}
	port := netlink.NewLinkAttrs()
	port.Name, port.MTU, port.MasterIndex = uplinkName, procrun.MTU, bridge.Attrs().Index
	link := &netlink.Veth{LinkAttrs: port, PeerName: uplinkPeer}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("making the uplink's interface: %w", err)
	}
	// Checksums and segments that a network card would finish must be finished here: there is no card.
	for _, feature := range []uint32{unix.ETHTOOL_STXCSUM, unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO} {
		if err := ethtoolOff(uplinkName, feature); err != nil {
			return fmt.Errorf("setting up the uplink's interface: %w", err)
		}
	}
	peer, err := netlink.LinkByName(uplinkPeer)
	if err != nil {
		return fmt.Errorf("finding the uplink's interface: %w", err)
	}
	// The far end is the gateway's, so this machine must not answer there in its own name.
	err = errors.Join(
		disableIPv6("/proc/sys/net/ipv6/conf", uplinkPeer),
		netlink.LinkSetARPOff(peer), netlink.LinkSetUp(link), netlink.LinkSetUp(peer))
	if err != nil {
		return fmt.Errorf("bringing the uplink up: %w", err)
	}
	packets, err := packetSocket(peer.Attrs().Index)
	if err != nil {
		return err
	}
	go copyPackets(socket, packets)
	go copyPackets(packets, socket)
	return nil
}

// disableIPv6 disables IPv6 on an interface. A kernel that was started without IPv6 has no such file.
func disableIPv6(dir, name string) error {
	err := os.WriteFile(filepath.Join(dir, name, "disable_ipv6"), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// packetSocket is a socket that sends and receives whole packets on an interface.
func packetSocket(index int) (int, error) {
	var everything [2]byte
	binary.BigEndian.PutUint16(everything[:], unix.ETH_P_ALL)
	protocol := binary.NativeEndian.Uint16(everything[:])
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return -1, fmt.Errorf("opening the uplink's packet socket: %w", err)
	}
	// Else our own packets would come back to us.
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return -1, fmt.Errorf("setting up the uplink's packet socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}); err != nil {
		return -1, fmt.Errorf("binding the uplink's packet socket: %w", err)
	}
	return fd, nil
}

// copyPackets moves packets until the source ends. One that cannot be sent is dropped, as networks do.
func copyPackets(to, from int) {
	packet := make([]byte, 1<<16)
	for {
		n, err := unix.Read(from, packet)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		_, _ = unix.Write(to, packet[:n])
	}
}

// ethtoolOff switches a feature of an interface off.
func ethtoolOff(name string, feature uint32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	value := struct{ command, data uint32 }{feature, 0}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:], name)
	request.data = unsafe.Pointer(&value)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 && errno != unix.EOPNOTSUPP {
		return errno
	}
	return nil
}
