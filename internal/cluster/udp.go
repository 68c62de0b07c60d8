package cluster

import (
	"net"
	"sync"
	"time"
)

// conversations are those that UDP clients have at one door. Each has a socket of its own towards a backend, by which the
// answers find their way back. A conversation ends when nobody has said anything for a while, or moves on when its backend has
// gone: unlike a TCP connection it would not notice.
type conversations struct {
	door net.PacketConn

	mu  sync.Mutex
	all map[string]conversation // by client
}

type conversation struct {
	net.Conn
	backend string
}

const udpIdleTime = time.Minute

// serveUDP carries packets until the door is closed.
func (f *forwarder) serveUDP(door net.PacketConn) {
	c := &conversations{door: door, all: map[string]conversation{}}
	defer c.close()
	packet := make([]byte, 1<<16)
	for {
		n, client, err := door.ReadFrom(packet)
		if err != nil {
			return
		}
		if to, err := c.of(client, f); err == nil {
			_ = to.SetReadDeadline(time.Now().Add(udpIdleTime))
			_, _ = to.Write(packet[:n])
		}
	}
}

// of is the conversation of a client, begun if there is none with a backend that is still one.
func (c *conversations) of(client net.Addr, f *forwarder) (conversation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, exists := c.all[client.String()]
	if exists && f.leadsTo(known.backend) {
		return known, nil
	}
	if exists {
		_ = known.Close()
	}
	backend := f.next()[0]
	conn, err := net.Dial("udp", backend)
	if err != nil {
		return conversation{}, err
	}
	begun := conversation{conn, backend}
	c.all[client.String()] = begun
	go c.answer(client, begun)
	return begun, nil
}

// answer returns a backend's packets to the client until the conversation ends.
func (c *conversations) answer(client net.Addr, from conversation) {
	packet := make([]byte, 1<<16)
	for {
		n, err := from.Read(packet)
		if err == nil {
			_, err = c.door.WriteTo(packet[:n], client)
		}
		if err != nil {
			break
		}
	}
	_ = from.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[client.String()] == from {
		delete(c.all, client.String())
	}
}

func (c *conversations) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conversation := range c.all {
		_ = conversation.Close()
	}
}
