package message

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
)

// Begin writes down that parts are about to be handed to a carrier.
func (s *Store) Begin(ctx context.Context, starts []Start) ([][]int, error) {
	return s.begin(ctx, strconv.FormatUint(rand.Uint64(), 36), starts)
}

// begin is Begin with a call id, which makes a retried call idempotent: a call that
// is repeated because its answer was lost is answered as before; one that comes too
// late takes no part that was released since.
func (s *Store) begin(ctx context.Context, call string, starts []Start) ([][]int, error) {
	if len(starts) == 0 {
		return nil, nil
	}
	refs := distinct(starts, func(st *Start) Ref { return st.Ref })
	const noun = "messages: begin"
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) ([][]int, error) {
		states, err := lock(ctx, tx, noun, refs)
		if err != nil {
			return nil, err
		}
		begun := make([][]int, len(starts))
		for i := range starts {
			if st := states[starts[i].Ref]; st != nil {
				begun[i] = st.begin(call, &starts[i])
			}
		}
		return begun, store(ctx, tx, noun, states)
	})
}

// begin returns the parts that may be handed over.
func (s *state) begin(call string, start *Start) (begun []int) {
	for _, n := range start.Parts {
		if n < 0 || n >= len(s.parts) {
			continue
		}
		p := &s.parts[n]
		switch {
		case p.State == Sending && p.Call == call:
		case p.State == Pending && p.Call != call, p.State == Sending && start.Again:
			p.State, p.Call, p.Carrier, p.Changed = Sending, call, start.Carrier, db.Millis(start.Now)
		default:
			continue
		}
		begun = append(begun, n)
		s.changed = true
		// A lease of which half is left is not moved: on PostgreSQL an update that changes
		// no indexed column adds no entry to any index.
		if half := start.Until.Sub(start.Now) / 2; s.due < db.Millis(start.Now.Add(half)) {
			s.due = db.Millis(start.Until)
		}
	}
	return begun
}

// distinct are the messages that a batch is of, each once.
func distinct[T any](batch []T, of func(*T) Ref) (refs []Ref) {
	seen := make(map[Ref]bool, len(batch))
	for i := range batch {
		if ref := of(&batch[i]); !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	return refs
}

// change is what shall happen to a part.
type change struct {
	Outcome
	report string
	now    time.Time // when it is recorded; At is when the answer or the receipt arrived
}

// Settle records what carriers said.
func (s *Store) Settle(ctx context.Context, outcomes []Outcome) ([]Message, error) {
	changes := make([]change, len(outcomes))
	for i, o := range outcomes {
		changes[i] = change{Outcome: o, now: o.At}
	}
	return s.settle(ctx, "messages: settle", changes)
}

// settle records changes and returns the messages that want reports.
func (s *Store) settle(ctx context.Context, noun string, changes []change) ([]Message, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	refs := distinct(changes, func(c *change) Ref { return c.PartRef.Ref })
	reports, err := db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) ([]state, error) {
		states, err := lock(ctx, tx, noun, refs)
		if err != nil {
			return nil, err
		}
		reports, refunds := s.apply(states, refs, changes)
		if err := store(ctx, tx, noun, states); err != nil {
			return nil, err
		}
		return reports, refund(ctx, tx, refunds)
	})
	if err != nil {
		return nil, err
	}
	// Unreported lists those that do not open until they do.
	return s.openedOf(ctx, noun, reports, func([]Message) error { return nil })
}

// apply applies changes to states. It returns the states that need reports, in the order of refs, and the refunds.
func (s *Store) apply(states map[Ref]*state, refs []Ref, changes []change) (reports []state, refunds []credit.Change) {
	of := make(map[Ref][]*change, len(refs))
	for i := range changes {
		ref := changes[i].PartRef.Ref
		of[ref] = append(of[ref], &changes[i])
	}
	for _, ref := range refs {
		st := states[ref]
		if st == nil {
			continue
		}
		now, moved, reported := of[ref][0].now, false, false
		for _, c := range of[ref] {
			if !st.settle(c) {
				continue
			}
			moved, reported = true, reported || c.State.Code() != 0
			if c.Refund {
				refunds = append(refunds, refundOf(ref.Account, ref.ID+ID(c.Part), c.At))
			}
		}
		if moved {
			st.schedule(now, s.db.Retention())
		}
		if st.report && reported {
			st.unreportedSince = cmp.Or(st.unreportedSince, db.Millis(now))
			reports = append(reports, *st)
		}
	}
	return reports, refunds
}

// settle records what became of a part and reports whether its state has changed.
// The carrier's id is kept in any case.
func (s *state) settle(c *change) bool {
	if c.Part < 0 || c.Part >= len(s.parts) {
		return false
	}
	p := &s.parts[c.Part]
	if carrier, ref := cmp.Or(c.Carrier, p.Carrier), cmp.Or(c.CarrierID, p.Ref); carrier != p.Carrier || ref != p.Ref {
		p.Carrier, p.Ref, s.changed = carrier, ref, true
	}
	if !s.transition(c.Part, c.State, c.At) {
		return false
	}
	p.Reason, p.Report = cmp.Or(c.Reason, p.Reason), cmp.Or(c.report, p.Report)
	if c.State == Pending {
		p.Due = db.Millis(c.Again)
	}
	if c.Resent {
		p.Resent = db.Millis(c.At)
	}
	return true
}

func refundOf(acct relay.AccountID, entry ID, at time.Time) credit.Change {
	return credit.Change{
		ID: "refund-" + entry.String(), Account: acct, Credits: 1, Reason: credit.Refund, Reference: entry.String(), At: at,
	}
}

// refund gives credits back, account by account in their order.
func refund(ctx context.Context, tx *db.Tx, refunds []credit.Change) error {
	slices.SortStableFunc(refunds, func(a, b credit.Change) int { return cmp.Compare(a.Account, b.Account) })
	for len(refunds) > 0 {
		n := 1
		for n < len(refunds) && refunds[n].Account == refunds[0].Account {
			n++
		}
		if _, err := credit.Apply(ctx, tx, refunds[:n]); err != nil {
			return err
		}
		refunds = refunds[n:]
	}
	return nil
}

// Renew moves the end of leases and returns the messages of which the caller still has
// the lease.
func (s *Store) Renew(ctx context.Context, ls []Lease, until time.Time) ([]Ref, error) {
	return s.moveDue(ctx, "messages: renew", ls, until)
}

// Release gives leases back unused.
func (s *Store) Release(ctx context.Context, ls []Lease, due time.Time) error {
	_, err := s.moveDue(ctx, "messages: release", ls, due)
	return err
}

// moveLeases finds the messages by their keys. With due + 0, SQLite does not read all that an
// account has queued for each of them, by the index of what is due.
const moveLeases = `
WITH leased AS MATERIALIZED (
  SELECT s.account, s.id FROM batch CROSS JOIN message_state s
  WHERE s.account = batch.account AND s.id = batch.id AND s.due + 0 BETWEEN 1 AND batch.ends
  ORDER BY s.account, s.id {for update})
UPDATE message_state SET due = $1 FROM leased
WHERE message_state.account = leased.account AND message_state.id = leased.id
RETURNING message_state.account, message_state.id`

// moveDue sets when messages are due. One of which nothing waits stays as it is, and so does
// one that another process has leased: its lease ends later.
func (s *Store) moveDue(ctx context.Context, noun string, ls []Lease, to time.Time) ([]Ref, error) {
	ls = db.LastOfEach(ls, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Ref.Account, b.Ref.Account), cmp.Compare(a.Ref.ID, b.Ref.ID))
	})
	b := db.BatchOf("account, id, ends", ls, func(l *Lease) []any { return []any{l.Ref.Account, l.Ref.ID, l.End} })
	return db.Returning(ctx, s.db, noun, moveLeases, refFields, to, b)
}
