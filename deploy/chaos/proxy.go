package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// condition is the treatment of connections by a proxy.
type condition int

const (
	normal  condition = iota
	cut               // all connections are reset, and new ones are closed
	delayed           // each chunk is passed on 50 to 500 ms later
	stalled           // connections are accepted, but nothing is passed on
)

// phase is a value that begin sets and end resets to its zero value.
type phase[T any] struct {
	mu    sync.Mutex
	value T
	ended chan struct{} // closed when the value is the zero value again
}

// begin sets the value until end is called.
func (p *phase[T]) begin(value T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value, p.ended = value, make(chan struct{})
}

// end sets the zero value and returns the old one.
func (p *phase[T]) end() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	var zero T
	oldValue := p.value
	p.value = zero
	close(p.ended)
	return oldValue
}

// now returns the value and a channel that end closes, or nil before the first begin.
func (p *phase[T]) now() (T, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, p.ended
}

// proxy passes connections on to a server, or breaks them according to its condition.
type proxy struct {
	addr, target string
	listener     net.Listener

	phase[condition]
	conns map[net.Conn]struct{} // guarded by the mutex of the phase
}

func newProxy(target string) (*proxy, error) {
	p := &proxy{target: target, conns: map[net.Conn]struct{}{}}
	var err error
	if p.listener, err = servers.Listen("127.0.0.1:0", p.pass); err != nil {
		return nil, err
	}
	p.addr = p.listener.Addr().String()
	return p, nil
}

// begin sets a condition until heal is called.
func (p *proxy) begin(c condition) {
	p.phase.begin(c)
	if c == cut {
		p.reset()
	}
}

// heal ends a condition. After stalled it resets all connections because the proxy discards the
// bytes that it has read.
func (p *proxy) heal() {
	if p.end() == stalled {
		p.reset()
	}
}

// reset resets every connection. The proxy accepts new ones.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // send RST instead of FIN
		}
		_ = c.Close()
	}
}

// add registers a connection for reset. It returns false if the proxy is cut.
func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.value == cut {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// pass copies both directions of a connection until one of them ends.
func (p *proxy) pass(client net.Conn) {
	defer p.drop(client)
	if !p.add(client) {
		return
	}
	if c, healed := p.now(); c == stalled {
		<-healed
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.add(server) {
		return
	}
	ended := make(chan struct{}, 2)
	for _, direction := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			p.copy(direction[1], direction[0])
			ended <- struct{}{}
		}()
	}
	<-ended
	p.drop(client)
	p.drop(server)
	<-ended
}

// copy copies one direction.
func (p *proxy) copy(dst io.Writer, src io.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := src.Read(chunk)
		c, healed := p.now()
		switch {
		case c == stalled:
			<-healed
			return
		case c == delayed:
			select {
			case <-time.After(time.Duration(50+rand.IntN(450)) * time.Millisecond):
			case <-healed:
			}
		}
		if n > 0 {
			if _, err := dst.Write(chunk[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
