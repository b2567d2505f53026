package submit

import (
	"context"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

const (
	// maxBatch is how many outcomes are saved at a time, collect how long is
	// waited for more after the first.
	maxBatch = 512
	collect  = 2 * time.Millisecond
	// pauseMin to pauseMax lie between tries while the store is away.
	pauseMin = 50 * time.Millisecond
	pauseMax = time.Second
)

// entry is an outcome that is not saved yet. A correction holds nothing.
type entry struct {
	it         *item
	o          message.Outcome
	correction bool
}

// book saves outcomes until they are saved.
type book struct {
	w     *Worker
	mu    sync.Mutex
	fresh []entry
	wake  chan struct{}
	drain chan struct{}
	done  chan struct{}
	life  context.Context
	end   context.CancelFunc
}

func newBook(w *Worker) *book {
	b := &book{w: w, wake: make(chan struct{}, 1), drain: make(chan struct{}), done: make(chan struct{})}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// add takes what became of a part of an item.
func (b *book) add(it *item, o message.Outcome) { b.put(entry{it: it, o: o}) }

// correct takes what was learnt later.
func (b *book) correct(it *item, o message.Outcome) { b.put(entry{it: it, o: o, correction: true}) }

func (b *book) put(e entry) {
	b.mu.Lock()
	b.fresh = append(b.fresh, e)
	b.mu.Unlock()
	tell(b.wake)
}

func (b *book) run() {
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
			if b.empty() {
				return
			}
		case <-b.life.Done():
			return
		}
	}
}

// gather waits a moment for more of a batch.
func (b *book) gather() {
	timer := time.NewTimer(collect)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.drain:
	case <-b.life.Done():
	}
}

func (b *book) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fresh) == 0
}

func (b *book) take() []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil {
		return nil
	}
	n := min(maxBatch, len(b.fresh))
	batch := b.fresh[:n:n]
	b.fresh = b.fresh[n:]
	return batch
}

// save tries until the batch is saved. While the store is away it waits; a batch
// that it refuses is tried one by one, so that one bad outcome holds up no other.
func (b *book) save(batch []entry) {
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		err := b.saveOnce(batch)
		switch {
		case err == nil:
			b.close(batch)
			return
		case relay.KindOf(err) != relay.KindUnavailable && len(batch) > 1:
			for i := range batch {
				b.save(batch[i : i+1])
			}
			return
		case relay.KindOf(err) != relay.KindUnavailable:
			o := &batch[0].o
			b.w.log.Error("an outcome is refused by the store", "account", o.Account, "msg_id", o.ID, "outcome", o.State, "error", err)
			b.close(batch)
			return
		}
		b.w.log.Warn("outcomes of messages wait for the store", "count", len(batch), "error", err)
		select {
		case <-time.After(pause):
		case <-b.life.Done():
			return
		}
	}
}

// saveOnce binds the carriers' ids first, so that a receipt is never too late to
// find its part, and records then what became of each.
func (b *book) saveOnce(batch []entry) error {
	ctx, cancel := context.WithTimeout(b.life, storeTimeout)
	defer cancel()
	outcomes := make([]message.Outcome, len(batch))
	var bindings []message.Binding
	for i := range batch {
		outcomes[i] = batch[i].o
		bindings = append(bindings, b.w.binding(batch[i].it, &batch[i].o)...)
	}
	if len(bindings) > 0 {
		if err := b.w.deps.Network.Bind(ctx, bindings); err != nil {
			return err
		}
	}
	told, err := b.w.deps.Work.Settle(ctx, outcomes)
	if err != nil {
		return err
	}
	if err := b.w.deps.Network.Tell(ctx, told); err != nil {
		b.w.log.Warn("reports are told later", "count", len(told), "error", err)
	}
	return nil
}

// binding is the id by which receipts name a part: the carrier's, or if its
// answer was lost our reference.
func (w *Worker) binding(it *item, o *message.Outcome) []message.Binding {
	l := w.named(o.Carrier)
	if l == nil || !l.route.Reports {
		return nil
	}
	var id string
	switch {
	case o.State == message.Unknown:
		id = smpp.UnansweredID(smpp.ReferenceOf(o.PartRef.String()), it.m.Destination)
	case o.Ref != "":
		id = smpp.CanonicalID(o.Ref)
	default:
		return nil
	}
	return []message.Binding{{Carrier: o.Carrier, IDs: []string{id}, Part: o.PartRef, Number: it.m.Destination}}
}

func (w *Worker) named(carrier string) *lane {
	for _, l := range w.lanes {
		if l.route.Name == carrier {
			return l
		}
	}
	return nil
}

func (b *book) close(batch []entry) {
	for i := range batch {
		if !batch[i].correction {
			b.w.closed(batch[i].it, 1)
		}
	}
}

// stop saves what is left, for as long as ctx allows.
func (b *book) stop(ctx context.Context) error {
	close(b.drain)
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	b.end()
	<-b.done
	return ctx.Err()
}
