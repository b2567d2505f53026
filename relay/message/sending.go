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
	// AlsoSending includes parts that are Sending: parts for a carrier that recognises duplicates,
	// or parts whose state an earlier call may have set before its answer was lost.
	AlsoSending bool
}

// MarkSending sets the state of parts to Sending before they are submitted. It returns for each
// SendingParts the parts that may be submitted: those that were Pending, or with AlsoSending
// also those that were Sending. The other parts were deleted or are leased elsewhere.
func (s *Store) MarkSending(ctx context.Context, sending []SendingParts) ([][]int, error) {
	return s.markSending(ctx, strconv.FormatUint(rand.Uint64(), 36), sending)
}

// markSending implements MarkSending. If the call with an id is repeated because its answer was lost,
// markSending returns the same parts, except parts that were released in between.
func (s *Store) markSending(ctx context.Context, callID string, sending []SendingParts) ([][]int, error) {
	const label = "messages: mark sending"
	if len(sending) == 0 {
		return nil, nil
	}
	refs := distinctRefs(sending, func(b *SendingParts) Ref { return b.Ref })
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) ([][]int, error) {
		rows, err := lockRows(ctx, tx, label, refs)
		if err != nil {
			return nil, err
		}
		submittable := make([][]int, len(sending))
		for i := range sending {
			if r := rows[sending[i].Ref]; r != nil {
				submittable[i] = r.beginSending(callID, &sending[i])
			}
		}
		return submittable, saveRows(ctx, tx, label, rows)
	})
}

func (r *row) beginSending(callID string, b *SendingParts) (submittable []int) {
	for _, n := range b.Parts {
		if n < 0 || n >= len(r.parts) {
			continue
		}
		p := &r.parts[n]
		switch {
		case p.State == Sending && p.Call == callID:
		case p.State == Pending && p.Call != callID, p.State == Sending && b.AlsoSending:
			p.State, p.Call, p.Carrier, p.Changed = Sending, callID, b.Carrier, db.Millis(b.Now)
		default:
			continue
		}
		submittable = append(submittable, n)
		r.changed = true
		// A lease with more than half of its time left is not moved: on PostgreSQL an update
		// that changes no indexed column adds no entry to any index.
		if minimum := b.LeaseEnd.Sub(b.Now) / 2; r.due < db.Millis(b.Now.Add(minimum)) {
			r.due = db.Millis(b.LeaseEnd)
		}
	}
	return submittable
}
