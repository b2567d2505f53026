package message

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// skippedIDs is the number of ids that are skipped after the database was restored to an
// earlier state: receipts for lost messages must not match other messages. A gateway uses
// fewer ids between two backups.
const skippedIDs = 10_000_000

// SkipIDs makes the next ids much larger than the last one.
func (s *Store) SkipIDs(ctx context.Context) error {
	return s.db.Run(ctx, "message ids", "UPDATE message_id SET last = last + $1", skippedIDs)
}

// MarkUnknown sets the pending parts that were due by a time to Unknown, with a reason, and
// returns their number. It is called after the database was restored to an earlier state:
// the parts may have been submitted or deleted after that state.
func (s *Store) MarkUnknown(ctx context.Context, dueBy, now time.Time, reason string) (count int, err error) {
	const label = "messages: mark unknown"
	const statement = `
		SELECT ` + rowColumns + `
		FROM message_state s
		WHERE s.pending > 0
		  AND s.scheduled <= $1
		  AND (s.account, s.id) > ($2, $3)
		ORDER BY s.account, s.id
		LIMIT $4 {for update}`
	var lastRef Ref
	for {
		var marked int
		rows, err := db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) ([]row, error) {
			rows, err := db.List(ctx, tx, label, statement, rowFields, dueBy, lastRef.Account, lastRef.ID, db.MaxSweep)
			if err != nil {
				return nil, err
			}
			marked = 0
			changed := make(map[Ref]*row, len(rows))
			for i := range rows {
				marked += rows[i].markUnknown(dueBy, now, reason)
				rows[i].schedule(now, s.db.Retention())
				changed[rows[i].Ref] = &rows[i]
			}
			return rows, saveRows(ctx, tx, label, changed)
		})
		if err != nil {
			return count, err
		}
		count += marked
		if len(rows) < db.MaxSweep {
			return count, nil
		}
		lastRef = rows[len(rows)-1].Ref
	}
}

func (r *row) markUnknown(dueBy, now time.Time, reason string) (count int) {
	for i := range r.parts {
		p := &r.parts[i]
		if p.State == Pending && p.Due <= db.Millis(dueBy) {
			p.State, p.Changed, p.Reason = Unknown, db.Millis(now), reason
			count++
		}
	}
	if count > 0 {
		r.version++
		r.changed = true
	}
	return count
}

// undecryptableReason is the Reason of parts that are Unknown because their message cannot be decrypted.
const undecryptableReason = relay.UndecryptableReason + ", then resend the message"

// markUndecryptable sets the due and the sending parts of messages that cannot be decrypted to Unknown.
func (s *Store) markUndecryptable(ctx context.Context, undecryptable []Message, now time.Time) error {
	refs := distinctRefs(undecryptable, (*Message).Ref)
	return s.db.Write(ctx, leaseLabel, func(ctx context.Context, tx *db.Tx) error {
		rows, err := lockRows(ctx, tx, leaseLabel, refs)
		if err != nil {
			return err
		}
		for _, r := range rows {
			r.markUnknown(now, now, undecryptableReason)
			for n := range r.parts {
				if r.parts[n].State == Sending && r.transition(n, Unknown, now) {
					r.parts[n].Reason = undecryptableReason
				}
			}
			r.schedule(now, s.db.Retention())
		}
		return saveRows(ctx, tx, leaseLabel, rows)
	})
}

// Resend schedules the Unknown parts of the messages that a filter selects, and returns their
// number. Only an operator calls Resend, because the phone may receive the parts twice. The
// time limit for retries of these parts starts now.
func (s *Store) Resend(ctx context.Context, f Filter, now time.Time) (int, error) {
	messages, _, err := s.List(ctx, f)
	if err != nil {
		return 0, err
	}
	var outcomes []Outcome
	for i := range messages {
		for n := range messages[i].Parts {
			if messages[i].Parts[n].State == Unknown {
				outcomes = append(outcomes, Outcome{
					PartRef: PartRef{Ref: messages[i].Ref(), Part: n}, State: Pending,
					Reason: "sent again by the operator", RetryAt: now, Resent: true, At: now,
				})
			}
		}
	}
	if _, err := s.Settle(ctx, outcomes); err != nil {
		return 0, err
	}
	return len(outcomes), nil
}
