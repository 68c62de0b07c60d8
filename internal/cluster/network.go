package cluster

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/internal/procrun"
)

// The network of the enclave. Pods, the node and the gateway to the machine's network share one bridge:
//
//	pod ── veth ──┐
//	pod ── veth ──┤ bridge (node: API server, kubelet, DNS, Services) ── veth ── packets ── parent process ── the machine's network
//
// The ranges are ones that neither Docker nor the usual clusters use: a pod cannot reach addresses of the machine's network in them.
var (
	podRange     = netip.MustParsePrefix("10.213.0.0/16")
	serviceRange = netip.MustParsePrefix("10.214.0.0/16")
	gateway      = netip.MustParseAddr("10.213.0.1")
	nodeAddress  = netip.MustParseAddr("10.213.0.2")
	hostAddress  = netip.MustParseAddr("10.213.255.254") // the machine's own 127.0.0.1
)

const (
	bridgeName = "trainyard0"
	uplinkName = "uplink"
	uplinkPeer = "uplink-out"
)

// serveServices makes every Service address one of the node's own, so that the proxy can listen on it.
func serveServices() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback interface: %w", err)
	}
	err = netlink.RouteAdd(&netlink.Route{
		LinkIndex: lo.Attrs().Index,
		Dst:       procrun.IPNet(serviceRange),
		Type:      unix.RTN_LOCAL,
		Table:     unix.RT_TABLE_LOCAL,
		Scope:     netlink.SCOPE_HOST,
	})
	if err != nil {
		return fmt.Errorf("routing Services to this node: %w", err)
	}
	return nil
}

// defaultRoute sends everything that is not for the pod network to the gateway.
func defaultRoute() error {
	if err := netlink.RouteAdd(&netlink.Route{Gw: gateway.AsSlice()}); err != nil {
		return fmt.Errorf("adding the route to the machine's network: %w", err)
	}
	return nil
}
