package cluster

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/trainyard/trainyard/internal/procrun"
)

// Every node has a bridge in a network namespace of its own. Those of further nodes are connected to the first node's by a veth
// pair each, so that all pods, nodes and the gateway are on one link and need no routes to each other:
//
//	pod ── veth ──┐
//	              ┤ bridge (node 2) ── veth ──┐
//	pod ── veth ──┤                           ┤
//	              ┤ bridge (node 1: API server, DNS, Services) ── uplink
//
// Services and DNS are served by the first node, for the pods of all.

// nodeUplink is the end of the veth pair in the further node.
const nodeUplink = "node-uplink"

// nodePort is the end in the first node, a port of its bridge.
func nodePort(s nodeSpec) string { return fmt.Sprintf("node%d", s.Index+1) }

// connectNode gives the network namespace of a further node's process a link to the first node's bridge.
func connectNode(s nodeSpec, pid int) error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("finding the bridge: %w", err)
	}
	if old, err := netlink.LinkByName(nodePort(s)); err == nil {
		_ = netlink.LinkDel(old) // of the node's process before, whose network namespace the kernel has not removed yet
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.MasterIndex, attrs.Flags = nodePort(s), procrun.MTU, bridge.Attrs().Index, net.FlagUp
	link := &netlink.Veth{LinkAttrs: attrs, PeerName: nodeUplink, PeerMTU: procrun.MTU, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("connecting node %s: %w", s.Name, err)
	}
	return nil
}

// joinFirstNode connects the bridge of a further node, in whose process it runs, to the first node.
func joinFirstNode() error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("finding the bridge: %w", err)
	}
	uplink, err := netlink.LinkByName(nodeUplink)
	if err != nil {
		return fmt.Errorf("finding the link to the first node: %w", err)
	}
	services := &netlink.Route{Dst: procrun.IPNet(serviceRange), Gw: nodeAddress.AsSlice()}
	err = errors.Join(netlink.LinkSetMaster(uplink, bridge), netlink.LinkSetUp(uplink), netlink.RouteAdd(services), defaultRoute())
	if err != nil {
		return fmt.Errorf("joining the first node: %w", err)
	}
	return nil
}
