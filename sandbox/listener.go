package sandbox

// This file is a listener that can close what it accepted, so that no watch outlives the server.

import (
	"net"
	"sync"
)

// trackedListener remembers the connections it accepted until they are closed.
type trackedListener struct {
	net.Listener
	port int

	mu     sync.Mutex
	open   map[*trackedConn]struct{}
	closed bool
}

// Accept is net.Listener's.
func (l *trackedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t := &trackedConn{Conn: c, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	if l.open == nil {
		l.open = map[*trackedConn]struct{}{}
	}
	l.open[t] = struct{}{}
	return t, nil
}

// closeConnections closes every open connection, and every later one at once.
func (l *trackedListener) closeConnections() {
	l.mu.Lock()
	l.closed = true
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close()
	}
}

type trackedConn struct {
	net.Conn
	listener *trackedListener
}

// Close is net.Conn's.
func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
