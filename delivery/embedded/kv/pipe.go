package kv

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeBuffer is how much one side may send before the other reads. net.Pipe has
// none, so a pipeline of commands on it waits for its own replies.
const pipeBuffer = 256 << 10

// newPipe returns the two ends of a connection in memory.
func newPipe() (client, server *pipeConn) {
	a, b := newStream(), newStream()
	return &pipeConn{in: a, out: b}, &pipeConn{in: b, out: a}
}

// pipeConn is a net.Conn with a bounded buffer in each direction.
type pipeConn struct{ in, out *byteStream }

func (c *pipeConn) Read(p []byte) (int, error)         { return c.in.read(p) }
func (c *pipeConn) Write(p []byte) (int, error)        { return c.out.write(p) }
func (c *pipeConn) LocalAddr() net.Addr                { return pipeAddr{} }
func (c *pipeConn) RemoteAddr() net.Addr               { return pipeAddr{} }
func (c *pipeConn) SetReadDeadline(t time.Time) error  { c.in.reading.set(t); return nil }
func (c *pipeConn) SetWriteDeadline(t time.Time) error { c.out.writing.set(t); return nil }

func (c *pipeConn) SetDeadline(t time.Time) error {
	c.in.reading.set(t)
	c.out.writing.set(t)
	return nil
}

func (c *pipeConn) Close() error {
	c.out.finish()
	c.in.abandon()
	return nil
}

// closeRead ends the requests of this side but lets it still answer.
func (c *pipeConn) closeRead() { c.in.finish() }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "memory" }
func (pipeAddr) String() string  { return "embedded" }

// byteStream is one direction. Each side is woken through a channel of one slot,
// which a deadline can be waited for together with.
type byteStream struct {
	mu       sync.Mutex
	buf      []byte
	from     int  // what was read of buf
	finished bool // no more will be written
	dropped  bool // no more will be read
	filled   chan struct{}
	drained  chan struct{}
	reading  *pipeDeadline
	writing  *pipeDeadline
}

func newStream() *byteStream {
	return &byteStream{
		filled: make(chan struct{}, 1), drained: make(chan struct{}, 1),
		reading: newPipeDeadline(), writing: newPipeDeadline(),
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *byteStream) read(p []byte) (int, error) {
	for {
		n, err := s.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-s.filled:
		case <-s.reading.passed():
			return 0, os.ErrDeadlineExceeded
		}
	}
}

func (s *byteStream) take(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return 0, net.ErrClosed
	}
	n := copy(p, s.buf[s.from:])
	s.from += n
	if s.from == len(s.buf) {
		s.buf, s.from = s.buf[:0], 0
	}
	switch {
	case n > 0:
		wake(s.drained)
		return n, nil
	case s.finished:
		wake(s.filled)
		return 0, io.EOF
	}
	return 0, nil
}

func (s *byteStream) write(p []byte) (int, error) {
	total := 0
	for {
		n, err := s.put(p[total:])
		total += n
		if err != nil || total == len(p) {
			return total, err
		}
		select {
		case <-s.drained:
		case <-s.writing.passed():
			return total, os.ErrDeadlineExceeded
		}
	}
}

func (s *byteStream) put(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished || s.dropped {
		wake(s.drained)
		return 0, io.ErrClosedPipe
	}
	if s.from > 0 && len(s.buf)+len(p) > cap(s.buf) {
		s.buf, s.from = append(s.buf[:0], s.buf[s.from:]...), 0
	}
	n := min(len(p), pipeBuffer-(len(s.buf)-s.from))
	s.buf = append(s.buf, p[:n]...)
	if n > 0 {
		wake(s.filled)
	}
	return n, nil
}

func (s *byteStream) finish() {
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	wake(s.filled)
	wake(s.drained)
}

func (s *byteStream) abandon() {
	s.mu.Lock()
	s.dropped, s.buf, s.from = true, nil, 0
	s.mu.Unlock()
	wake(s.filled)
	wake(s.drained)
}

// pipeDeadline is a channel that closes when a deadline has passed, as the one
// of net.Pipe. It exists from the first time somebody sets a deadline.
type pipeDeadline struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{}
}

func newPipeDeadline() *pipeDeadline { return &pipeDeadline{done: make(chan struct{})} }

func (d *pipeDeadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

func (d *pipeDeadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.done // the timer fired: its close must not hit the next channel
	}
	d.timer = nil
	select {
	case <-d.done:
		d.done = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	done := d.done
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(done) })
		return
	}
	close(done)
}
