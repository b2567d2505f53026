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

// manners is the manner that there is.
type manners struct {
	mu     sync.Mutex
	manner manner
	ended  chan struct{} // closed when it accepts again
}

// begin sets a manner that end ends.
func (m *manners) begin(how manner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.manner, m.ended = how, make(chan struct{})
}

func (m *manners) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.manner = accepting
	close(m.ended)
}

// now is the manner that there is, and the end of it.
func (m *manners) now() (manner, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.manner, m.ended
}
