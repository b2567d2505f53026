package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy forwards connections to a server. From Cut to Mend, it has no connections and accepts none;
// the server keeps running.
type Proxy struct {
	// URL is redis://127.0.0.1:<port>.
	URL string

	t      testing.TB
	server string
	addr   string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{}
}

// NewProxy starts a proxy for a server.
func NewProxy(t testing.TB, server *Server) *Proxy {
	t.Helper()
	p := &Proxy{t: t, server: server.Addr, addr: "127.0.0.1:0", conns: make(map[net.Conn]struct{})}
	p.Mend()
	t.Cleanup(p.Cut)
	p.addr = p.listener.Addr().String()
	p.URL = "redis://" + p.addr
	return p
}

// Mend accepts connections again, on the same port.
func (p *Proxy) Mend() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatalf("proxy: %v", err)
	}
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.forward(conn)
		}
	}()
}

// Cut closes every connection and the listener. Answers of the server may be lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *Proxy) forward(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns[conn] = struct{}{}
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	_, _ = io.Copy(conn, server)
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
}
