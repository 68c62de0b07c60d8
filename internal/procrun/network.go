package procrun

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MTU is that of every interface of the pod network.
const MTU = 1500

// network is the pod network: one bridge, one veth pair per pod.
type network struct {
	config Config
	host   *netlink.Handle // talks to the enclave's network whatever thread calls
	bridge int

	mu   sync.Mutex
	used map[netip.Addr]bool
	last netip.Addr
}

func newNetwork(config Config) (*network, error) {
	host, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening netlink: %w", err)
	}
	n := &network{config: config, host: host, used: map[netip.Addr]bool{}, last: config.own().Addr()}
	n.used[config.Node], n.used[config.Gateway] = true, true
	if err := n.createBridge(); err != nil {
		host.Close()
		return nil, fmt.Errorf("creating bridge %s: %w", config.Bridge, err)
	}
	return n, nil
}

func (n *network) createBridge() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = n.config.Bridge, MTU
	// An address of its own keeps the bridge from changing it with every port that comes and goes.
	attrs.HardwareAddr = hardwareAddress("bridge " + n.config.Bridge + n.config.Node.String())
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := n.host.LinkAdd(bridge); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	link, err := n.host.LinkByName(n.config.Bridge)
	if err != nil {
		return err
	}
	n.bridge = link.Attrs().Index
	if err := n.host.LinkSetUp(link); err != nil {
		return err
	}
	return n.addresses(n.host, link, n.config.Node)
}

func (n *network) close() {
	if link, err := n.host.LinkByIndex(n.bridge); err == nil {
		_ = n.host.LinkDel(link)
	}
	n.host.Close()
}

// addresses gives link an address of the pod network and makes the whole pod network reachable through it.
func (n *network) addresses(h *netlink.Handle, link netlink.Link, addr netip.Addr) error {
	bits := n.config.Pods.Bits()
	if !n.config.Pods.Contains(addr) {
		bits = addr.BitLen()
	}
	own := netip.PrefixFrom(addr, bits)
	if err := h.AddrReplace(link, &netlink.Addr{IPNet: IPNet(own)}); err != nil {
		return fmt.Errorf("setting address %s: %w", addr, err)
	}
	for _, on := range []netip.Prefix{n.config.Pods.Masked(), host(n.config.Node), host(n.config.Gateway)} {
		if !on.IsValid() || own.Contains(on.Addr()) {
			continue
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: IPNet(on), Scope: netlink.SCOPE_LINK}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("setting route to %s: %w", on, err)
		}
	}
	return nil
}

// allocate takes the lowest free address after the one given last, so that an address is not used again at once.
func (n *network) allocate() (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	own := n.config.own()
	first := own.Addr().Next()
	for addr, wrapped := n.last.Next(), false; ; addr = addr.Next() {
		// The last address of a range is its broadcast address.
		if !own.Contains(addr) || !own.Contains(addr.Next()) {
			if wrapped {
				return netip.Addr{}, fmt.Errorf("no free pod address in %s", own)
			}
			addr, wrapped = first, true
		}
		if !n.used[addr] {
			n.used[addr], n.last = true, addr
			return addr, nil
		}
	}
}

// release gives an address back. The pod's interface goes with its namespace, which the kernel does for many pods at
// once; removing it here would block all others for some ten milliseconds.
func (n *network) release(addr netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, addr)
}

// join connects the network namespace of the calling thread, held by ns, to the pod network.
func (n *network) join(ns *os.File, id string, addr netip.Addr) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.MasterIndex, attrs.Flags = "veth"+id[:11], MTU, n.bridge, net.FlagUp
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.Fd())}
	if err := n.host.LinkAdd(veth); err != nil {
		return fmt.Errorf("creating network interface: %w", err)
	}
	// A pod must reach itself through the address of its own Service.
	if err := n.host.LinkSetHairpin(veth, true); err != nil {
		return fmt.Errorf("setting hairpin mode: %w", err)
	}
	pod, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("opening netlink: %w", err)
	}
	defer pod.Close()
	return n.configure(pod, addr)
}

func (n *network) configure(pod *netlink.Handle, addr netip.Addr) error {
	eth0, err := pod.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("finding network interface: %w", err)
	}
	// The pod network speaks IPv4 only; without this every pod would announce itself on the bridge in IPv6.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", []byte("1"), 0)
	if err := pod.LinkSetUp(eth0); err != nil {
		return fmt.Errorf("starting network interface: %w", err)
	}
	if err := n.addresses(pod, eth0, addr); err != nil {
		return err
	}
	routes := map[netip.Prefix]netip.Addr{n.config.Services: n.config.serviceGateway(), everywhere: n.config.Gateway}
	for to, via := range routes {
		if !to.IsValid() || !via.IsValid() {
			continue
		}
		route := &netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: IPNet(to), Gw: via.AsSlice()}
		if err := pod.RouteReplace(route); err != nil {
			return fmt.Errorf("setting route to %s: %w", to, err)
		}
	}
	return nil
}

var everywhere = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

func host(addr netip.Addr) netip.Prefix {
	if !addr.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(addr, addr.BitLen())
}

// IPNet is a prefix as netlink takes it.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// hardwareAddress derives a locally administered address from a name.
func hardwareAddress(name string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(name))
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}
}

// loopbackUp starts the loopback interface of the calling thread's network namespace.
func loopbackUp() error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return h.LinkSetUp(lo)
}
