package email

import (
	"context"
	"sync"
	"time"
)

// pool holds idle sessions and limits how many are connected.
type pool struct {
	slots   chan struct{}
	idleFor time.Duration
	now     func() time.Time
	connect func(context.Context) (*session, error)

	mu     sync.Mutex
	idle   []*session
	closed bool
}

func newPool(limit int, idleFor time.Duration, now func() time.Time, connect func(context.Context) (*session, error)) *pool {
	return &pool{slots: make(chan struct{}, limit), idleFor: idleFor, now: now, connect: connect}
}

// get returns a working session and waits for a slot. The caller must return it
// with put.
func (p *pool) get(ctx context.Context) (*session, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for s := p.pop(); s != nil; s = p.pop() {
		if p.now().Sub(s.idleAt) < p.idleFor && s.alive(ctx) {
			return s, nil
		}
		s.conn.Close()
	}
	s, err := p.connect(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return s, nil
}

func (p *pool) pop() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	lastIndex := len(p.idle) - 1
	s := p.idle[lastIndex]
	p.idle = p.idle[:lastIndex]
	return s
}

// put returns a session to the pool, or closes it.
func (p *pool) put(s *session) {
	defer func() { <-p.slots }()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.broken || p.closed {
		s.conn.Close()
		return
	}
	s.idleAt = p.now()
	p.idle = append(p.idle, s)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.idle {
		s.conn.Close()
	}
	p.idle = nil
}
