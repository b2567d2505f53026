package main

import "sync"

// manner is how the sink and the mailbox answer.
type manner int

const (
	accepting manner = iota
	failing          // 500, or 451
	hanging          // no answer
	dripping         // 200, and the body comes drop by drop
	resetting        // the connection is reset
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
	before := p.value
	p.value = zero
	close(p.ended)
	return before
}

// now is the value that there is, and the end of it.
func (p *phase[T]) now() (T, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, p.ended
}
