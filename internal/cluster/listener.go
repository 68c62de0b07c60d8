package cluster

import (
	"errors"
	"iter"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// jointListener accepts from several listeners as one. Its address is the first's.
type jointListener struct {
	listeners []net.Listener
	accepted  chan net.Conn
	closed    chan struct{}
	once      sync.Once
}

func newJointListener(listeners ...net.Listener) *jointListener {
	j := &jointListener{listeners: listeners, accepted: make(chan net.Conn), closed: make(chan struct{})}
	for _, l := range listeners {
		go j.acceptFrom(l)
	}
	return j
}

func (j *jointListener) acceptFrom(l net.Listener) {
	for conn := range connections(l) {
		select {
		case j.accepted <- conn:
		case <-j.closed:
			_ = conn.Close()
			return
		}
	}
}

// connections accepts connections until the listener is closed. Any other error passes, such as that the process has no file
// descriptor left, so it tries again.
func connections(l net.Listener) iter.Seq[net.Conn] {
	return func(handle func(net.Conn) bool) {
		for {
			conn, err := l.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				klog.V(1).InfoS("Accepting a connection", "address", l.Addr(), "err", err)
				time.Sleep(acceptDelay)
			case !handle(conn):
				return
			}
		}
	}
}

// acceptDelay is how long a listener waits after an error.
const acceptDelay = 50 * time.Millisecond

// Accept waits for the next connection from any of the listeners.
func (j *jointListener) Accept() (net.Conn, error) {
	select {
	case conn := <-j.accepted:
		return conn, nil
	case <-j.closed:
		return nil, net.ErrClosed
	}
}

// Close closes all of them.
func (j *jointListener) Close() error {
	j.once.Do(func() {
		close(j.closed)
		for _, l := range j.listeners {
			_ = l.Close()
		}
	})
	return nil
}

// Addr is the first listener's.
func (j *jointListener) Addr() net.Addr { return j.listeners[0].Addr() }
