package message

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// SendingParts are parts of one message that are about to be submitted to a carrier.
type SendingParts struct {
	Ref
	Parts    []int // counted from 0
	Carrier  string
	Now      time.Time
	LeaseEnd time.Time // the new end of the lease
	// AlsoSending includes parts that are Sending, for a carrier that recognises a repeated
	// part.
	AlsoSending bool
}

// MarkSending sets the state of parts to Sending before they are submitted. It returns for each
// SendingParts the parts that may be submitted: those that were Pending, or with AlsoSending
// also those that were Sending. The other parts were deleted or are leased elsewhere.
func (s *Store) MarkSending(ctx context.Context, beginnings []SendingParts) ([][]int, error) {
	return s.markSending(ctx, strconv.FormatUint(rand.Uint64(), 36), beginnings)
}

// markSending implements MarkSending; call identifies the call. If the call is repeated because its answer
// was lost, markSending returns the same parts, except parts that were released in between.
func (s *Store) markSending(ctx context.Context, call string, beginnings []SendingParts) ([][]int, error) {
	const label = "messages: begin"
	if len(beginnings) == 0 {
		return nil, nil
	}
	refs := distinctRefs(beginnings, func(b *SendingParts) Ref { return b.Ref })
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) ([][]int, error) {
		rows, err := lockRows(ctx, tx, label, refs)
		if err != nil {
			return nil, err
		}
		begun := make([][]int, len(beginnings))
		for i := range beginnings {
			if r := rows[beginnings[i].Ref]; r != nil {
				begun[i] = r.markSending(call, &beginnings[i])
			}
		}
		return begun, saveRows(ctx, tx, label, rows)
	})
}

func (r *row) markSending(call string, b *SendingParts) (begun []int) {
	for _, n := range b.Parts {
		if n < 0 || n >= len(r.parts) {
			continue
		}
		p := &r.parts[n]
		switch {
		case p.State == Sending && p.Call == call:
		case p.State == Pending && p.Call != call, p.State == Sending && b.AlsoSending:
			p.State, p.Call, p.Carrier, p.Changed = Sending, call, b.Carrier, db.Millis(b.Now)
		default:
			continue
		}
		begun = append(begun, n)
		r.changed = true
		// A lease with more than half of its time left is not moved: on PostgreSQL an update
		// that changes no indexed column adds no entry to any index.
		if minimum := b.LeaseEnd.Sub(b.Now) / 2; r.due < db.Millis(b.Now.Add(minimum)) {
			r.due = db.Millis(b.LeaseEnd)
		}
	}
	return begun
}
