package submit

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/message"
)

const (
	// maxClaim is how many messages are claimed at a time.
	maxClaim = 500
	// storeTimeout bounds a question to the store.
	storeTimeout = 5 * time.Second
	// away is how long what is for a carrier without room is left alone.
	away = 5 * time.Second
)

// claim looks for what is due, as long as there is room for it.
func (w *Worker) claim() {
	tick := time.NewTicker(w.o.Poll)
	defer tick.Stop()
	for {
		more := w.claimSome()
		if more {
			if w.claims.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-tick.C:
		case <-w.room:
		case <-w.claims.Done():
			return
		}
	}
}

// claimSome claims once, and reports whether there is more, and room for it.
func (w *Worker) claimSome() bool {
	w.giveBack()
	limit := min(maxClaim, w.roomInAll())
	if limit <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(w.claims, storeTimeout)
	defer cancel()
	now := w.deps.Now()
	ms, err := w.deps.Work.Claim(ctx, now, now.Add(w.o.Lease), limit)
	if err != nil && w.claims.Err() == nil {
		w.log.Warn("messages cannot be claimed", "error", err)
	}
	full := w.takeAll(ms)
	for after, refs := range full {
		if err := w.release(ctx, refs, now.Add(after)); err != nil {
			w.log.Warn("messages without room wait for their lease", "error", err)
		}
	}
	return err == nil && len(ms) == limit && len(full) == 0
}

// takeAll takes messages, and returns those without room by how long they are
// left alone: those of a carrier that takes none for longer.
func (w *Worker) takeAll(ms []message.Message) map[time.Duration][]message.Ref {
	full := make(map[time.Duration][]message.Ref)
	for i := range ms {
		if w.take(&ms[i]) {
			continue
		}
		after := w.o.Poll
		if l := w.router.lane(ms[i].Destination); l != nil && !l.moves() {
			after = away
		}
		full[after] = append(full[after], ms[i].Ref())
	}
	return full
}

// giveBack releases what was dispatched and had no room.
func (w *Worker) giveBack() {
	w.mu.Lock()
	refs := w.overflow
	w.overflow = nil
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.claims, storeTimeout)
	defer cancel()
	if err := w.release(ctx, refs, w.deps.Now()); err != nil {
		w.log.Warn("messages without room wait for their lease", "error", err)
	}
}

func (w *Worker) release(ctx context.Context, refs []message.Ref, due time.Time) error {
	for chunk := range slices.Chunk(refs, maxClaim) {
		if err := w.deps.Work.Release(ctx, chunk, due); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) roomInAll() (n int) {
	for _, l := range w.lanes {
		n += l.roomLeft()
	}
	return n
}

// renew keeps the leases of what is in hand.
func (w *Worker) renew() {
	tick := time.NewTicker(w.o.Lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.renewDue()
		case <-w.claims.Done():
			return
		}
	}
}

func (w *Worker) renewDue() {
	until := w.deps.Now().Add(w.o.Lease)
	ctx, cancel := context.WithTimeout(w.claims, storeTimeout)
	defer cancel()
	for refs := range slices.Chunk(w.endingBefore(until.Add(-w.o.Lease/2), until), maxClaim) {
		if err := w.deps.Work.Renew(ctx, refs, until); err != nil {
			w.log.Warn("leases of messages are not renewed", "error", err)
			return
		}
	}
}

// endingBefore lists what is in hand whose lease ends before a time, and notes
// the new end.
func (w *Worker) endingBefore(end, until time.Time) (refs []message.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, it := range w.held {
		if it.until.Before(end) {
			it.until = until
			refs = append(refs, ref)
		}
	}
	return refs
}
