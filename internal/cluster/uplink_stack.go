package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/containers/gvisor-tap-vsock/pkg/services/dns"
	"github.com/containers/gvisor-tap-vsock/pkg/tap"
	"github.com/containers/gvisor-tap-vsock/pkg/types"
	"github.com/sirupsen/logrus"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/trainyard/trainyard/internal/procrun"
)

// The stack is gVisor's, and its link is a switch of gvisor-tap-vsock. That library has a network of its own around both. It is not
// used, as it refuses link-local addresses, where clouds serve credentials, and lets ten connections at a time wait for an answer: ten
// pods that ask a silent address would block all others.

const (
	gatewayMAC = "5a:94:ef:e4:0c:dd"
	uplinkNIC  = 1
	// pendingDials is how many connections to the machine's network may wait for an answer at once.
	pendingDials = 4096
	// uplinkDialTimeout is how long one of them waits. Then the pod's kernel asks again, until its own limit.
	uplinkDialTimeout = 20 * time.Second
)

// serveUplink carries the enclave's connections to the machine's network until the enclave or ctx ends.
func serveUplink(ctx context.Context, conn net.Conn) error {
	logrus.SetLevel(logrus.PanicLevel) // the library's; a connection that fails is the pod's to report
	link, err := tap.NewLinkEndpoint(false, procrun.MTU, gatewayMAC, gateway.String(), []string{hostAddress.String()})
	if err != nil {
		return fmt.Errorf("making the uplink's network: %w", err)
	}
	network := tap.NewSwitch(false, procrun.MTU)
	link.Connect(network)
	network.Connect(link)
	s, err := newUplinkStack(link)
	if err != nil {
		return fmt.Errorf("making the uplink's network: %w", err)
	}
	defer s.Destroy()
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s, 0, pendingDials, forwardUplinkTCP).HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s, forwardUplinkUDP).HandlePacket)
	if err := serveUplinkDNS(s); err != nil {
		return err
	}
	return network.Accept(ctx, conn, types.BessProtocol)
}

// newUplinkStack is a stack that answers for every address but those of the pod range.
func newUplinkStack(link stack.LinkEndpoint) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	if err := s.CreateNIC(uplinkNIC, link); err != nil {
		return nil, errors.New(err.String())
	}
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFrom4(gateway.As4()).WithPrefix()}
	if err := s.AddProtocolAddress(uplinkNIC, own, stack.AddressProperties{}); err != nil {
		return nil, errors.New(err.String())
	}
	s.SetSpoofing(uplinkNIC, true)
	s.SetPromiscuousMode(uplinkNIC, true)
	pods, err := tcpip.NewSubnet(tcpip.AddrFrom4(podRange.Addr().As4()), tcpip.MaskFromBytes(net.CIDRMask(podRange.Bits(), 32)))
	if err != nil {
		return nil, err
	}
	s.SetRouteTable([]tcpip.Route{{Destination: pods, NIC: uplinkNIC}})
	return s, nil
}

// serveUplinkDNS answers questions at the gateway as the machine's own resolver does.
func serveUplinkDNS(s *stack.Stack) error {
	at := tcpip.FullAddress{NIC: uplinkNIC, Addr: tcpip.AddrFrom4(gateway.As4()), Port: 53}
	packets, err := gonet.DialUDP(s, &at, nil, ipv4.ProtocolNumber)
	if err != nil {
		return fmt.Errorf("serving names to pods: %w", err)
	}
	listener, err := gonet.ListenTCP(s, at, ipv4.ProtocolNumber)
	if err != nil {
		return fmt.Errorf("serving names to pods: %w", err)
	}
	server, err := dns.New(packets, listener, nil)
	if err != nil {
		return fmt.Errorf("serving names to pods: %w", err)
	}
	go server.Serve()    //nolint:errcheck // ends with the stack
	go server.ServeTCP() //nolint:errcheck // ends with the stack
	return nil
}

// outsideAddress is where a pod's connection leads on the machine's network.
func outsideAddress(id stack.TransportEndpointID) string {
	host := id.LocalAddress.String()
	if host == hostAddress.String() {
		host = "127.0.0.1"
	}
	return join(host, int32(id.LocalPort))
}

// dialOutside connects to an address of the machine's network. silent says that nobody has answered.
func dialOutside(address string, timeout time.Duration) (conn net.Conn, silent bool, err error) {
	conn, err = net.DialTimeout("tcp", address, timeout)
	var answer net.Error
	return conn, errors.As(err, &answer) && answer.Timeout(), err
}

// forwardUplinkTCP connects a pod to the machine's network.
func forwardUplinkTCP(r *tcp.ForwarderRequest) {
	outside, silent, err := dialOutside(outsideAddress(r.ID()), uplinkDialTimeout)
	if err != nil {
		r.Complete(!silent) // silence is the pod's to wait for, as on the machine itself; all else looks like a refused connection
		return
	}
	defer outside.Close() //nolint:errcheck // both directions are done
	var queue waiter.Queue
	endpoint, tcpErr := r.CreateEndpoint(&queue)
	r.Complete(false)
	if tcpErr != nil {
		return
	}
	inside := gonet.NewTCPConn(&queue, endpoint)
	defer inside.Close() //nolint:errcheck // both directions are done
	var both sync.WaitGroup
	both.Go(func() { copyTCP(outside.(*net.TCPConn), inside) })
	both.Go(func() { copyTCP(inside, outside.(*net.TCPConn)) })
	both.Wait()
}

// forwardUplinkUDP lets a pod exchange packets with an address of the machine's network, until both are silent for udpIdleTimeout.
func forwardUplinkUDP(r *udp.ForwarderRequest) {
	if r.ID().LocalAddress == header.IPv4Broadcast {
		return
	}
	var queue waiter.Queue
	endpoint, tcpErr := r.CreateEndpoint(&queue)
	if tcpErr != nil {
		return
	}
	inside := gonet.NewUDPConn(&queue, endpoint)
	outside, err := net.Dial("udp", outsideAddress(r.ID()))
	if err != nil {
		_ = inside.Close()
		return
	}
	go copyUDP(outside, inside)
	go copyUDP(inside, outside)
}

// copyUDP copies packets of one direction. It closes both when they are silent, or one is closed.
func copyUDP(to, from net.Conn) {
	defer to.Close()   //nolint:errcheck // what is not read by now is lost, as packets may be
	defer from.Close() //nolint:errcheck // what is not read by now is lost, as packets may be
	packet := make([]byte, 1<<16)
	for {
		_ = from.SetReadDeadline(time.Now().Add(udpIdleTimeout))
		n, err := from.Read(packet)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // nobody listened when the last packet came; somebody may soon
		}
		if err != nil {
			return
		}
		_ = to.SetReadDeadline(time.Now().Add(udpIdleTimeout))
		_, _ = to.Write(packet[:n])
	}
}
