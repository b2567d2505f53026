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
	cut               // every connection is closed, and no other is taken
	delayed           // everything is late
	stalled           // connections are taken, and nothing goes through or comes back
)

// phase is a value that differs from its zero value for a time.
type phase[T any] struct {
	mu    sync.Mutex
	value T
	ended chan struct{} // closed when the value is the zero value again
}

// begin sets a value until end is called.
func (p *phase[T]) begin(value T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value, p.ended = value, make(chan struct{})
}

// end sets the zero value and returns the one before.
func (p *phase[T]) end() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	var zero T
	oldValue := p.value
	p.value = zero
	close(p.ended)
	return oldValue
}

// now is the value that there is, and the end of it.
func (p *phase[T]) now() (T, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, p.ended
}

// proxy passes connections on to a server, as its condition lets it.
type proxy struct {
	addr, target string
	listener     net.Listener

	phase[condition]
	conns map[net.Conn]struct{} // under the lock of the phase
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

// begin sets a condition that heal ends.
func (p *proxy) begin(t condition) {
	p.phase.begin(t)
	if t == cut {
		p.reset()
	}
}

// heal ends a condition. What a stalled proxy has read is gone, and so are its
// connections.
func (p *proxy) heal() {
	if p.end() == stalled {
		p.reset()
	}
}

// reset resets every connection; new ones are taken.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an end
		}
		_ = c.Close()
	}
}

// keep remembers a connection, to reset it, unless it is to be cut at once.
func (p *proxy) keep(c net.Conn) bool {
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

// pass carries a connection in both directions until one of them ends.
func (p *proxy) pass(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	if t, healed := p.now(); t == stalled {
		<-healed
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			p.carry(way[1], way[0])
			ended <- struct{}{}
		}()
	}
	<-ended
	p.drop(client)
	p.drop(server)
	<-ended
}

// carry copies one direction.
func (p *proxy) carry(dst io.Writer, src io.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := src.Read(chunk)
		t, healed := p.now()
		switch {
		case t == stalled:
			<-healed
			return
		case t == delayed:
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
