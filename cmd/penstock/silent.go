package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// silence is how long a connection that has not sent anything may hold up the
// end of the program.
const silence = time.Second

// silents is a listener that knows which of its connections have never sent a
// byte: browsers and balancers open them ahead. The server takes each for a
// request under way, and would wait for it until it drains no longer.
type silents struct {
	net.Listener
	mu    sync.Mutex
	conns map[*silent]struct{}
}

func newSilents(l net.Listener) *silents {
	return &silents{Listener: l, conns: make(map[*silent]struct{})}
}

// Accept waits for a connection.
func (l *silents) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := &silent{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[s] = struct{}{}
	return s, nil
}

// hush closes those that are silent still.
func (l *silents) hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.conns {
		_ = s.Conn.Close()
	}
	clear(l.conns)
}

func (l *silents) forget(s *silent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, s)
}

// silent is a connection that may have sent nothing yet.
type silent struct {
	net.Conn
	of    *silents
	spoke atomic.Bool
}

// Read reads; the first byte ends the silence.
func (s *silent) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 && !s.spoke.Load() && s.spoke.CompareAndSwap(false, true) {
		s.of.forget(s)
	}
	return n, err
}

// Close closes the connection.
func (s *silent) Close() error {
	s.of.forget(s)
	return s.Conn.Close()
}
