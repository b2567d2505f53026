package httpd

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// errBareLF means that a line of a request's head ends without a CR.
var errBareLF = errors.New("httpd: a line of the head ends without a carriage return")

// Listener accepts the connections of an app. It tracks connections that have not
// sent a byte, which browsers and load balancers open in advance. The server counts
// each as an active request and would wait for it during shutdown.
type Listener struct {
	net.Listener
	mu   sync.Mutex
	idle map[*conn]struct{}
}

// Listen returns a Listener over another one.
func Listen(l net.Listener) *Listener {
	return &Listener{Listener: l, idle: make(map[*conn]struct{})}
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &conn{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle[one] = struct{}{}
	return one, nil
}

// CloseIdle closes the connections that have not sent a byte.
func (l *Listener) CloseIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.idle {
		_ = c.Conn.Close()
	}
	clear(l.idle)
}

func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.idle, c)
}

// conn is a connection to a client. The server reads it in one goroutine.
type conn struct {
	net.Conn
	of     *Listener
	active atomic.Bool
	head   head
	bare   bool
	// unread means that a body was not read completely: Close lets the client read
	// the response first.
	unread atomic.Bool
}

// Read implements net.Conn. For a head with a bare LF it returns the bytes before it,
// and then an error: the library would accept such a head or wait for more.
func (c *conn) Read(b []byte) (int, error) {
	if c.bare {
		return 0, errBareLF
	}
	n, err := c.Conn.Read(b)
	if n > 0 && c.active.CompareAndSwap(false, true) {
		c.of.forget(c)
	}
	if at := c.head.follow(b[:n]); at >= 0 {
		c.bare = true
		if at == 0 {
			return 0, errBareLF
		}
		return at, nil
	}
	return n, err
}

const (
	lingerTime = 2 * time.Second
	lingerMost = 16 << 20 // bytes
)

// Close closes the connection. Closing a connection with unread bytes resets it, and
// a client that is still sending may lose the response; so Close discards incoming
// bytes for up to lingerTime.
func (c *conn) Close() error {
	c.of.forget(c)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.unread.Load() {
		if half.CloseWrite() == nil && c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, lingerMost))
		}
	}
	return c.Conn.Close()
}

// head follows the lines of a request's head as its bytes arrive.
type head struct {
	line  int  // bytes of the line so far, its CR among them
	cr    bool // the last of them is a CR
	begun bool // the request line was there: blank lines before it are none of the head
	over  bool
	after int  // bytes that came behind the head
	lost  bool // where the next head begins is not known
}

// follow takes what arrived next and returns where in it a line of the head ends
// without a CR, -1 if none does.
func (h *head) follow(b []byte) int {
	for i := 0; i < len(b); {
		if h.over {
			h.after += len(b) - i
			return -1
		}
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			h.line += len(b) - i
			h.cr = b[len(b)-1] == '\r'
			return -1
		}
		if n > 0 && b[i+n-1] != '\r' || n == 0 && !h.cr {
			return i + n
		}
		if h.line+n > 1 {
			h.begun = true
		} else {
			h.over = h.begun
		}
		h.line, h.cr = 0, false
		i += n + 1
	}
	return -1
}

// complete reports whether a body of a size has arrived whole.
func (h *head) complete(size int) bool { return !h.lost && size >= 0 && h.after >= size }

// next begins another head, if what arrived behind the last one was its body and
// nothing else. Where that is not known, of a body in chunks or when requests
// come before the answers, the lines of this connection's heads are followed no
// longer: what is left is the check of each head that the server has read.
func (h *head) next(size int) {
	lost := h.lost || !h.over || h.after != size
	*h = head{over: lost, lost: lost}
}
