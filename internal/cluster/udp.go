package cluster

import (
	"net"
	"sync"
	"time"
)

// udpSessions are those of the UDP clients of one forwarder. Each has a socket of its own to a backend, by which the answers are
// matched to their client. A session ends when its client is silent for udpIdleTimeout. When its backend is gone it gets another one: unlike
// a TCP connection it would not notice.
type udpSessions struct {
	listener net.PacketConn

	mu  sync.Mutex
	all map[string]udpSession // by client
}

type udpSession struct {
	net.Conn
	backend string
}

const udpIdleTimeout = time.Minute

// serveUDP forwards packets until the listener is closed.
func (f *forwarder) serveUDP(listener net.PacketConn) {
	s := &udpSessions{listener: listener, all: map[string]udpSession{}}
	defer s.close()
	packet := make([]byte, 1<<16)
	for {
		n, client, err := listener.ReadFrom(packet)
		if err != nil {
			return
		}
		if to, err := s.of(client, f); err == nil {
			_ = to.SetReadDeadline(time.Now().Add(udpIdleTimeout))
			_, _ = to.Write(packet[:n])
		}
	}
}

// of is the session of a client. It is created where there is none, or none whose backend is still one.
func (s *udpSessions) of(client net.Addr, f *forwarder) (udpSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, exists := s.all[client.String()]
	if exists && f.hasBackend(session.backend) {
		return session, nil
	}
	if exists {
		_ = session.Close()
	}
	backend := f.next()[0]
	conn, err := net.Dial("udp", backend)
	if err != nil {
		return udpSession{}, err
	}
	session = udpSession{conn, backend}
	s.all[client.String()] = session
	go s.answer(client, session)
	return session, nil
}

// answer returns a backend's packets to the client until the session ends.
func (s *udpSessions) answer(client net.Addr, from udpSession) {
	packet := make([]byte, 1<<16)
	for {
		n, err := from.Read(packet)
		if err == nil {
			_, err = s.listener.WriteTo(packet[:n], client)
		}
		if err != nil {
			break
		}
	}
	_ = from.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[client.String()] == from {
		delete(s.all, client.String())
	}
}

func (s *udpSessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.all {
		_ = session.Close()
	}
}
