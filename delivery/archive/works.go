package archive

import (
	"cmp"
	"context"
	"sync"

	"github.com/penstock/penstock/relay"
)

// Works does what takes longer than somebody waits: it goes on when they leave,
// and they find it when they come again.
type Works struct {
	slots chan struct{}
	life  context.Context
	end   context.CancelFunc
	wait  sync.WaitGroup
	mu    sync.Mutex
	under map[string]*work // by name
}

// work is one that is under way.
type work struct {
	done  chan struct{}
	count int64 // valid once done is closed, as is err
	err   error
}

// NewWorks returns a Works; atOnce are under way at one time, 0 means 2.
func NewWorks(atOnce int) *Works {
	w := &Works{slots: make(chan struct{}, cmp.Or(atOnce, 2)), under: make(map[string]*work)}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// Close breaks off what is under way.
func (w *Works) Close() error {
	w.end()
	w.wait.Wait()
	return nil
}

// Do does a work, or waits for the one of that name, and returns what it counted.
// When ctx ends first the work goes on, and the error is relay.KindUnavailable;
// the next call finds it. One that was broken off is relay.KindUnavailable too.
func (w *Works) Do(ctx context.Context, name string, do func(ctx context.Context) (int64, error)) (int64, error) {
	one := w.begin(name, do)
	select {
	case <-one.done:
		w.mu.Lock()
		if w.under[name] == one {
			delete(w.under, name)
		}
		w.mu.Unlock()
		return one.count, one.err
	case <-ctx.Done():
		return 0, relay.Errorf(relay.KindUnavailable, "archive %s: is still being made: %w", name, ctx.Err())
	}
}

func (w *Works) begin(name string, do func(ctx context.Context) (int64, error)) *work {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.under[name]; one != nil {
		return one
	}
	one := &work{done: make(chan struct{})}
	w.under[name] = one
	w.wait.Go(func() {
		defer close(one.done)
		select {
		case w.slots <- struct{}{}:
			one.count, one.err = do(w.life)
			<-w.slots
		case <-w.life.Done():
			one.err = w.life.Err()
		}
		if w.life.Err() != nil {
			one.err = relay.Errorf(relay.KindUnavailable, "archive %s: broken off: %w", name, w.life.Err())
		}
	})
	return one
}
