package gateway

import (
	"context"
	"sync"
)

// Gate stops processing while the state of the database is unknown. Loops that process records
// either run under Run, or check Closed before they lease a record and before they begin to
// process it. A new Gate is closed. Closed of a nil Gate returns false. Safe for concurrent use.
type Gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	closed chan struct{} // closed while the gate is closed
}

// NewGate returns a closed Gate.
func NewGate() *Gate {
	g := &Gate{opened: make(chan struct{}), closed: make(chan struct{})}
	close(g.closed)
	return g
}

// Close ends the functions that Run calls and prevents new calls until Open.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !isDone(g.closed) {
		g.opened = make(chan struct{})
		close(g.closed)
	}
}

// Open opens the gate.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isDone(g.closed) {
		g.closed = make(chan struct{})
		close(g.opened)
	}
}

// Closed reports whether the gate is closed.
func (g *Gate) Closed() bool {
	if g == nil {
		return false
	}
	_, closed := g.channels()
	return isDone(closed)
}

// Run calls run whenever the gate opens, with a context that ends when the gate closes. It returns
// when ctx ends or when run returns while the gate is open, with the error of run.
func (g *Gate) Run(ctx context.Context, run func(context.Context) error) error {
	for {
		opened, _ := g.channels()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil
		}
		_, closed := g.channels()
		openCtx, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-closed:
				cancel()
			case <-openCtx.Done():
			}
		}()
		err := run(openCtx)
		cancel()
		if err != nil || ctx.Err() != nil || !isDone(closed) {
			return err
		}
	}
}

func (g *Gate) channels() (opened, closed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, g.closed
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
