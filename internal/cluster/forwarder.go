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

// forwarder listens on one address of a Service and forwards to its backends, in turn.
type forwarder struct {
	closer io.Closer

	mu       sync.Mutex
	backends []string
	turn     int
}

const backendDialTimeout = 5 * time.Second

func newForwarder(a listenAddress, backends []string) (*forwarder, error) {
	f := &forwarder{backends: backends}
	switch a.protocol {
	case corev1.ProtocolTCP:
		listener, err := net.Listen("tcp", a.address)
		if err != nil {
			return nil, err
		}
		f.closer = listener
		go f.acceptTCP(listener)
	case corev1.ProtocolUDP:
		conn, err := net.ListenPacket("udp", a.address)
		if err != nil {
			return nil, err
		}
		f.closer = conn
		go f.serveUDP(conn)
	default:
		return nil, fmt.Errorf("protocol %s is not supported here", a.protocol)
	}
	return f, nil
}

// setBackends sets the backends of new connections; existing connections go on.
func (f *forwarder) setBackends(backends []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backends = backends
}

// hasBackend reports whether an address is still one of a backend.
func (f *forwarder) hasBackend(backend string) bool {
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
	for client := range connections(listener) {
		go f.forwardTCP(client.(*net.TCPConn))
	}
}

// forwardTCP connects a client to the first backend that answers. One that is gone but still listed is skipped.
func (f *forwarder) forwardTCP(client *net.TCPConn) {
	defer client.Close() //nolint:errcheck // both directions are done
	for _, address := range f.next() {
		conn, err := net.DialTimeout("tcp", address, backendDialTimeout)
		if err != nil {
			continue
		}
		backend := conn.(*net.TCPConn)
		defer backend.Close() //nolint:errcheck // both directions are done
		var both sync.WaitGroup
		both.Go(func() { copyTCP(backend, client) })
		both.Go(func() { copyTCP(client, backend) })
		both.Wait()
		return
	}
	_ = client.SetLinger(0) // nobody answers: reset, as a refused connection would look
}

// halfConn is a connection whose directions are closed one by one.
type halfConn interface {
	io.ReadWriter
	CloseRead() error
	CloseWrite() error
}

// copyTCP copies one direction and closes it at its end.
func copyTCP(to, from halfConn) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
	_ = from.CloseRead()
}
