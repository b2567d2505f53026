package message

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
)

// Outcome is the result of submitting one part.
type Outcome struct {
	PartRef
	// State is Accepted, Rejected or Unknown, or Pending for a retry at RetryAt. A state that
	// cannot follow the part's current state is ignored, but Carrier and CarrierID are saved
	// in any case.
	State     State
	Carrier   string
	CarrierID string // the carrier's id of the part
	Reason    string
	RetryAt   time.Time
	// Resent records At as the part's ResentAt.
	Resent bool
	// Refund returns the credit: for a Rejected part that no carrier refused.
	Refund bool
	At     time.Time
}

// change is a change of a part's state.
type change struct {
	Outcome
	report string
	now    time.Time // the time of recording; At is the time at which the answer or the receipt arrived
}

// Settle records the outcomes of submissions and refunds in one transaction. It returns the
// messages to report, with their new states.
func (s *Store) Settle(ctx context.Context, outcomes []Outcome) ([]Message, error) {
	changes := make([]change, len(outcomes))
	for i, o := range outcomes {
		changes[i] = change{Outcome: o, now: o.At}
	}
	return s.settle(ctx, "messages: settle", changes)
}

// Receive records receipts of parts and skips those that are not Matched. It returns the
// messages to report, with their new states.
func (s *Store) Receive(ctx context.Context, receipts []Receipt, now time.Time) ([]Message, error) {
	var changes []change
	for i := range receipts {
		if r := &receipts[i]; r.Matched {
			changes = append(changes, change{Outcome: Outcome{PartRef: r.Part, State: r.State, At: r.At}, report: r.Line, now: now})
		}
	}
	return s.settle(ctx, "messages: receive", changes)
}

func (s *Store) settle(ctx context.Context, label string, changes []change) ([]Message, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	refs := distinctRefs(changes, func(c *change) Ref { return c.PartRef.Ref })
	changesByRef := make(map[Ref][]*change, len(refs))
	for i := range changes {
		ref := changes[i].PartRef.Ref
		changesByRef[ref] = append(changesByRef[ref], &changes[i])
	}
	toReport, err := db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (toReport []row, err error) {
		rows, err := lockRows(ctx, tx, label, refs)
		if err != nil {
			return nil, err
		}
		var refunds []credit.Change
		for _, ref := range refs {
			r := rows[ref]
			if r == nil {
				continue
			}
			now, hasChanged, needsReport := changesByRef[ref][0].now, false, false
			for _, c := range changesByRef[ref] {
				if !r.settle(c) {
					continue
				}
				hasChanged, needsReport = true, needsReport || c.State.Code() != 0
				if c.Refund {
					refunds = append(refunds, refundOf(ref.Account, ref.ID+ID(c.Part), c.At))
				}
			}
			if hasChanged {
				r.schedule(now, s.db.Retention())
			}
			if r.wantsReport && needsReport {
				r.unreportedSince = cmp.Or(r.unreportedSince, db.Millis(now))
				toReport = append(toReport, *r)
			}
		}
		if err := saveRows(ctx, tx, label, rows); err != nil {
			return nil, err
		}
		return toReport, refund(ctx, tx, refunds)
	})
	if err != nil {
		return nil, err
	}
	// Messages that cannot be decrypted stay unreported until they can be decrypted.
	messages, _, err := s.messagesOf(ctx, label, toReport)
	return messages, err
}

// settle records a change of a part and reports whether the part's state has changed.
func (r *row) settle(c *change) bool {
	if c.Part < 0 || c.Part >= len(r.parts) {
		return false
	}
	p := &r.parts[c.Part]
	if carrier, id := cmp.Or(c.Carrier, p.Carrier), cmp.Or(c.CarrierID, p.CarrierID); carrier != p.Carrier || id != p.CarrierID {
		p.Carrier, p.CarrierID, r.changed = carrier, id, true
	}
	if !r.transition(c.Part, c.State, c.At) {
		return false
	}
	p.Reason, p.Report = cmp.Or(c.Reason, p.Reason), cmp.Or(c.report, p.Report)
	if c.State == Pending {
		p.Due = db.Millis(c.RetryAt)
	}
	if c.Resent {
		p.Resent = db.Millis(c.At)
	}
	return true
}

func refundOf(acct relay.AccountID, part ID, now time.Time) credit.Change {
	return credit.Change{
		ID: "refund-" + part.String(), Account: acct, Credits: 1, Reason: credit.Refund, Reference: part.String(), At: now,
	}
}

// refund applies refunds, in the order of the accounts.
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

// Delete removes a pending part and refunds it. It returns relay.KindNotFound if the
// account has no pending part with that id.
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, id ID, now time.Time) error {
	const statement = `
		SELECT ` + rowColumns + `
		FROM message_state s
		WHERE s.account = $1
		  AND s.id <= $2
		ORDER BY s.id DESC
		LIMIT 1 {for update}`
	label := "message " + id.String()
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		r, err := db.One(ctx, tx, label, statement, rowFields, acct, id)
		if err != nil {
			return err
		}
		part := id - r.ID
		if part >= ID(len(r.parts)) || !r.transition(int(part), Removed, now) {
			return relay.Errorf(relay.KindNotFound, "%s: not pending", label)
		}
		r.schedule(now, s.db.Retention())
		if err := saveRows(ctx, tx, label, map[Ref]*row{r.Ref: &r}); err != nil {
			return err
		}
		return refund(ctx, tx, []credit.Change{refundOf(acct, id, now)})
	})
}
