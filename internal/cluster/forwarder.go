package cluster

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// forwarder passes what arrives at one door on to backends, in turn.
type forwarder struct {
	closer io.Closer

	mu       sync.Mutex
	backends []string
	turn     int
}

const backendDialTime = 5 * time.Second

func newForwarder(d door, backends []string) (*forwarder, error) {
	f := &forwarder{backends: backends}
	switch d.protocol {
	case corev1.ProtocolTCP:
		listener, err := net.Listen("tcp", d.address)
		if err != nil {
			return nil, err
		}
		f.closer = listener
		go f.acceptTCP(listener)
	case corev1.ProtocolUDP:
		conn, err := net.ListenPacket("udp", d.address)
		if err != nil {
			return nil, err
		}
		f.closer = conn
		go f.serveUDP(conn)
	default:
		return nil, fmt.Errorf("protocol %s is not supported here", d.protocol)
	}
	return f, nil
}

// lead sets the backends of connections to come; those there are go on.
func (f *forwarder) lead(backends []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backends = backends
}

// leadsTo tells whether a backend is still one.
func (f *forwarder) leadsTo(backend string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.backends, backend)
}

func (f *forwarder) close() { _ = f.closer.Close() }

// next lists the backends, beginning with the one whose turn it is.
func (f *forwarder) next() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.backends)
	ordered := make([]string, 0, n)
	for i := range n {
		ordered = append(ordered, f.backends[(f.turn+i)%n])
	}
	f.turn++
	return ordered
}

func (f *forwarder) acceptTCP(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go f.carryTCP(client.(*net.TCPConn))
	}
}

// carryTCP joins a client to the first backend that answers. One that has gone without our knowing is passed over.
func (f *forwarder) carryTCP(client *net.TCPConn) {
	defer client.Close() //nolint:errcheck // both directions are done
	for _, address := range f.next() {
		conn, err := net.DialTimeout("tcp", address, backendDialTime)
		if err != nil {
			continue
		}
		backend := conn.(*net.TCPConn)
		defer backend.Close() //nolint:errcheck // both directions are done
		var both sync.WaitGroup
		both.Go(func() { carry(backend, client) })
		both.Go(func() { carry(client, backend) })
		both.Wait()
		return
	}
	_ = client.SetLinger(0) // nobody answers: reset, as a refused connection would look
}

// carry copies one direction and passes its end on.
func carry(to, from *net.TCPConn) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
	_ = from.CloseRead()
}
