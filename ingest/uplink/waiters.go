package uplink

import (
	"sync"

	"github.com/penstock/penstock/relay/iot"
)

// waiters are requests that wait for what their frame updates.
type waiters struct {
	mu   sync.Mutex
	open map[string]chan []iot.Point
}

func newWaiters() *waiters { return &waiters{open: make(map[string]chan []iot.Point)} }

// add opens a place for an answer under a name that nobody else has.
func (w *waiters) add(name string) <-chan []iot.Point {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan []iot.Point, 1)
	w.open[name] = ch
	return ch
}

func (w *waiters) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, name)
}

// tell answers the one that waits under a name, if somebody does.
func (w *waiters) tell(name string, points []iot.Point) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch, ok := w.open[name]; ok {
		ch <- points
		delete(w.open, name)
	}
}
