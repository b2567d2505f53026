package uplink

import (
	"sync"

	"github.com/penstock/penstock/relay/iot"
)

// waiters holds the requests that wait for the points of their frame.
type waiters struct {
	mu   sync.Mutex
	open map[string]chan []iot.Point
}

func newWaiters() *waiters { return &waiters{open: make(map[string]chan []iot.Point)} }

// add registers a request under a unique name.
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

// notify sends points to the request with a name, if it is still waiting.
func (w *waiters) notify(name string, points []iot.Point) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch, ok := w.open[name]; ok {
		ch <- points
		delete(w.open, name)
	}
}
