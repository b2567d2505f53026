package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// Outcomes are saved in batches of at most maxBatch, collected for at most
// collect after the first.
const (
	maxBatch = 256
	collect  = 2 * time.Millisecond
	// saveTimeout bounds one try to save; pauseMin to pauseMax lie between tries
	// while the store is down; parked is the wait for one the store refuses.
	saveTimeout = 5 * time.Second
	pauseMin    = 50 * time.Millisecond
	pauseMax    = time.Second
	parked      = 10 * time.Second
)

// book saves outcomes until they are saved, and knows which are not yet.
type book struct {
	store outbox.Store
	log   *slog.Logger
	saved func(saved []outbox.Outcome, turns []outbox.Ref)

	mu      sync.Mutex
	unsaved map[string]struct{} // ids; one outcome per delivery at a time
	fresh   []outbox.Outcome

	wake   chan struct{}
	filled chan struct{} // a whole batch is there
	life   context.Context
	end    context.CancelFunc
	drain  chan struct{} // closed when the loop ends once it has nothing left
	done   chan struct{}
}

func newBook(store outbox.Store, log *slog.Logger, saved func(saved []outbox.Outcome, turns []outbox.Ref)) *book {
	b := &book{
		store: store, log: log, saved: saved, unsaved: make(map[string]struct{}),
		wake: make(chan struct{}, 1), filled: make(chan struct{}, 1),
		drain: make(chan struct{}), done: make(chan struct{}),
	}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

func (b *book) start() { go b.loop() }

// add takes an outcome; from now on has knows it until it is saved.
func (b *book) add(o outbox.Outcome) {
	b.mu.Lock()
	b.unsaved[o.ID] = struct{}{}
	b.fresh = append(b.fresh, o)
	n := len(b.fresh)
	b.mu.Unlock()
	tell(b.wake)
	if n >= maxBatch {
		tell(b.filled)
	}
}

func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// has reports whether a delivery has an outcome that is not saved yet.
func (b *book) has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.unsaved[id]
	return ok
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.unsaved)
}

// stop saves what is left and returns how many could not be saved before ctx
// ended.
func (b *book) stop(ctx context.Context) int {
	close(b.drain)
	wait(ctx, b.done)
	b.end()
	<-b.done
	return b.len()
}

func (b *book) loop() {
	defer close(b.done)
	for {
		if batch := b.take(); len(batch) > 0 {
			b.save(batch)
			continue
		}
		select {
		case <-b.wake:
			b.gather()
		case <-b.drain:
			if b.pending() == 0 {
				return
			}
		case <-b.life.Done():
			return
		}
	}
}

// gather waits a moment for more of a batch.
func (b *book) gather() {
	select {
	case <-b.filled:
	case <-time.After(collect):
	case <-b.drain:
	case <-b.life.Done():
	}
}

func (b *book) pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fresh)
}

func (b *book) take() []outbox.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil {
		return nil
	}
	n := min(maxBatch, len(b.fresh))
	batch := b.fresh[:n:n]
	if b.fresh = b.fresh[n:]; len(b.fresh) == 0 {
		b.fresh = nil
	}
	return batch
}

// save tries until the batch is saved. While the store is down it waits; a
// batch it refuses is tried one by one, so that one bad outcome holds up no
// other.
func (b *book) save(batch []outbox.Outcome) {
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		turns, err := b.finish(batch)
		switch {
		case err == nil:
			b.forget(batch, turns)
			return
		case relay.KindOf(err) != relay.KindUnavailable && len(batch) > 1:
			for i := range batch {
				b.save(batch[i : i+1])
			}
			return
		case relay.KindOf(err) != relay.KindUnavailable:
			b.park(batch[0], err)
			return
		}
		b.log.Warn("outcomes wait for the store", "count", b.len(), "error", err)
		select {
		case <-time.After(pause):
		case <-b.life.Done():
			return
		}
	}
}

func (b *book) finish(batch []outbox.Outcome) ([]outbox.Ref, error) {
	ctx, cancel := context.WithTimeout(b.life, saveTimeout)
	defer cancel()
	return b.store.Finish(ctx, batch)
}

func (b *book) forget(batch []outbox.Outcome, turns []outbox.Ref) {
	b.mu.Lock()
	for i := range batch {
		delete(b.unsaved, batch[i].ID)
	}
	b.mu.Unlock()
	b.saved(batch, turns)
}

// park puts an outcome that the store refuses aside for a while.
func (b *book) park(o outbox.Outcome, err error) {
	b.log.Error("outcome refused by the store", "account", o.Account, "delivery_id", o.ID, "error", err)
	time.AfterFunc(parked, func() {
		if b.life.Err() == nil {
			b.add(o)
		}
	})
}
