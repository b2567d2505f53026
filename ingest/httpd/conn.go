package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// errBareLF means that a line of the head of a request ends without a CR.
var errBareLF = errors.New("httpd: head line ends without a carriage return")

// errFraming means that the framing of a chunked body violates RFC 9112.
var errFraming = errors.New("httpd: invalid framing of a chunked body")

// Listener accepts the connections of an app, up to a limit. It tracks connections that have not
// sent a byte, which browsers and load balancers open in advance: the server library counts them
// as active requests, and would wait for them during a shutdown.
//
// At the limit, a new connection replaces a connection that waits for its client because it is
// idle or receives a request slowly. The library would refuse the new connection instead, so that
// slow clients could block all other clients. If no connection waits, the new one is closed
// without an answer.
//
// Listener counts and closes TCP connections below TLS, because closing a TLS connection may wait
// for its client.
type Listener struct {
	net.Listener
	tlsConfig *tls.Config // nil without TLS
	limits    *Limits
	// draining means that every response closes its connection.
	draining atomic.Bool

	mu        sync.Mutex
	openConns map[*conn]struct{}
	idleConns map[*conn]struct{} // the connections that have not sent a byte
}

// Listen returns a Listener over a TCP listener, without TLS if tlsConfig is nil.
func Listen(l net.Listener, tlsConfig *tls.Config, limits *Limits) *Listener {
	return &Listener{Listener: l, tlsConfig: tlsConfig, limits: limits, openConns: make(map[*conn]struct{}), idleConns: make(map[*conn]struct{})}
}

// Accept waits for a connection. It does not wait for a TLS handshake.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.register(raw); c != nil {
			return c, nil
		}
		l.limits.unserved.Add(1)
		l.limits.log("connections", reasonFull, 0)
		_ = raw.Close()
	}
}

// register adds a connection. It returns nil at the limit if no connection waits for its client.
func (l *Listener) register(raw net.Conn) *conn {
	c := &conn{Conn: raw, raw: raw, listener: l}
	if l.tlsConfig != nil {
		c.Conn = tls.Server(raw, l.tlsConfig)
	}
	c.beginWaiting()

	l.mu.Lock()
	var oldest *conn
	if len(l.openConns) >= l.limits.connections {
		if oldest = l.longestWaiting(); oldest == nil {
			l.mu.Unlock()
			return nil
		}
		delete(l.openConns, oldest)
		delete(l.idleConns, oldest)
	}
	l.openConns[c], l.idleConns[c] = struct{}{}, struct{}{}
	l.mu.Unlock()

	if oldest != nil {
		_ = oldest.raw.Close()
		l.limits.evicted.Add(1)
		l.limits.log("connections", reasonEvicted, 0)
	}
	return c
}

// evictionSample is the number of waiting connections from which longestWaiting chooses.
const evictionSample = 16

// longestWaiting returns the connection in a sample that has waited longest for its client, or nil
// if no connection waits.
func (l *Listener) longestWaiting() *conn {
	var oldest *conn
	var oldestSince int64
	sampled := 0
	for c := range l.openConns {
		since := c.waitingSince.Load()
		if since == 0 {
			continue
		}
		if oldest == nil || since < oldestSince {
			oldest, oldestSince = c, since
		}
		if sampled++; sampled == evictionSample {
			break
		}
	}
	return oldest
}

// CloseIdle closes the connections that have not sent a byte.
func (l *Listener) CloseIdle() {
	l.mu.Lock()
	idle := slices.Collect(maps.Keys(l.idleConns))
	clear(l.idleConns)
	l.mu.Unlock()
	for _, c := range idle {
		_ = c.raw.Close()
	}
}

// Drain refuses new connections and closes each open connection after its next response, until
// all are closed or ctx is done. A persistent connection thus ends with a response, and not while
// its client sends a request.
func (l *Listener) Drain(ctx context.Context) {
	l.draining.Store(true)
	_ = l.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	countOpen := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.openConns)
	}
	for countOpen() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Close refuses new connections. Repeated calls return nil.
func (l *Listener) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// setActive records that a connection has sent its first byte.
func (l *Listener) setActive(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.idleConns, c)
}

func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.idleConns, c)
	delete(l.openConns, c)
}

// conn is a connection to a client. The server library reads it in one goroutine.
type conn struct {
	net.Conn          // the TLS connection, if the listener has TLS
	raw      net.Conn // the TCP connection
	listener *Listener
	active   atomic.Bool
	// waitingSince is the time at which the connection began to wait for its client, in Unix ns; 0 if
	// it does not wait.
	waitingSince atomic.Int64
	framing      framing
	bareLF       bool // a line of a head ended without a CR
	servedCount  int  // the number of answered requests
	// unread means that a body was not read completely, so that Close must let the client
	// read the response first.
	unread atomic.Bool
}

// Read implements net.Conn. It returns an error after a bare LF in a head, because the library
// would accept such a head or wait for more bytes, and after invalid framing of a chunked body.
func (c *conn) Read(b []byte) (int, error) {
	switch {
	case c.bareLF:
		return 0, errBareLF
	case c.framing.part == invalidFraming:
		return 0, errFraming
	}
	n, err := c.Conn.Read(b)
	if n > 0 && c.active.CompareAndSwap(false, true) {
		c.listener.setActive(c)
	}
	if offset := c.framing.follow(b[:n]); offset >= 0 {
		c.bareLF = true
		if offset == 0 {
			return 0, errBareLF
		}
		return offset, nil
	}
	return n, err
}

// arrived reports whether the current request has arrived completely.
func (c *conn) arrived() bool { return c.framing.completeCount > c.servedCount }

// beginWaiting records that the connection waits for its client.
func (c *conn) beginWaiting() { c.waitingSince.Store(time.Now().UnixNano()) }

// endWaiting records that the connection no longer waits for its client.
func (c *conn) endWaiting() { c.waitingSince.Store(0) }

const (
	lingerTime = 2 * time.Second
	maxLinger  = 16 << 20 // bytes
)

// Close closes the connection. Closing a connection with unread bytes would reset it, and a client
// that is still sending could lose the response. Close therefore discards incoming bytes for up to
// lingerTime first. During that time the connection counts as waiting for its client.
func (c *conn) Close() error {
	defer c.listener.forget(c)
	c.beginWaiting()
	if writer, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.unread.Load() {
		if writer.CloseWrite() == nil && c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, maxLinger))
		}
	}
	return c.Conn.Close()
}

// Certificate is the certificate of a TLS listener. It can be replaced while connections are open,
// and is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// LoadCertificate reads a certificate chain and its key from PEM files.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	return c, c.Reload()
}

// Reload reads the files again. An error does not change the certificate.
func (c *Certificate) Reload() error {
	certificate, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s, key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current.Store(&certificate)
	return nil
}

// Expires returns the end of the validity of the certificate.
func (c *Certificate) Expires() time.Time { return c.current.Load().Leaf.NotAfter }

// Config returns the configuration of a listener for TLS 1.2 and 1.3. New connections use the last
// loaded certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
