package redis

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipe is one end of a connection in memory. Writing never blocks: miniredis answers each
// command before it reads the next, so a client that writes a pipeline of commands to a
// net.Pipe would block forever. The buffered data is limited by the commands that a client
// has in flight.
type pipe struct{ incoming, outgoing *stream }

func newPipe() (client, server *pipe) {
	a, b := &stream{}, &stream{}
	a.changed, b.changed = sync.NewCond(&a.mu), sync.NewCond(&b.mu)
	return &pipe{incoming: a, outgoing: b}, &pipe{incoming: b, outgoing: a}
}

func (p *pipe) SetDeadline(t time.Time) error  { return p.SetReadDeadline(t) }
func (*pipe) SetWriteDeadline(time.Time) error { return nil }
func (*pipe) LocalAddr() net.Addr              { return address{} }
func (*pipe) RemoteAddr() net.Addr             { return address{} }

// Read waits for data, the end of the connection or the deadline.
func (p *pipe) Read(b []byte) (int, error) {
	s := p.incoming
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.data.Len() == 0 {
		if s.closed {
			return 0, io.EOF
		}
		if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		s.changed.Wait()
	}
	n, err := s.data.Read(b)
	if s.data.Len() == 0 && s.data.Cap() > maxEmptyCap {
		s.data = bytes.Buffer{}
	}
	return n, err
}

// Write appends to the data that the other end reads.
func (p *pipe) Write(b []byte) (int, error) {
	s := p.outgoing
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	s.changed.Signal()
	return s.data.Write(b)
}

// SetReadDeadline sets the time at which reads end; the zero time means never.
func (p *pipe) SetReadDeadline(t time.Time) error {
	s := p.incoming
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if !t.IsZero() {
		s.timer = time.AfterFunc(time.Until(t), s.changed.Broadcast)
	}
	return nil
}

// Close ends both directions. Data that was written before can still be read.
func (p *pipe) Close() error {
	p.incoming.close()
	p.outgoing.close()
	return nil
}

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "embedded" }

// maxEmptyCap is the largest capacity, in bytes, with which an empty buffer is used again.
const maxEmptyCap = 1 << 20

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	changed  *sync.Cond
	data     bytes.Buffer
	closed   bool
	deadline time.Time
	timer    *time.Timer
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.changed.Broadcast()
}
