package message

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// skippedIDs is by how much ids grow when the database was put back to an earlier state:
// receipts of messages that it lacks must not find other messages. It is more than a
// gateway takes between two backups.
const skippedIDs = 10_000_000

// SkipIDs makes the next ids much larger than the last one.
func (s *Store) SkipIDs(ctx context.Context) error {
	return s.db.Run(ctx, "message ids", "UPDATE message_id SET last = last + $1", skippedIDs)
}

// MarkUnknown gives the pending parts that were due by a time the state Unknown, with a
// reason, and returns their number. It does so in a database that was put back to an
// earlier state: the parts may have been submitted, or deleted, since.
func (s *Store) MarkUnknown(ctx context.Context, dueBy, now time.Time, reason string) (count int, err error) {
	const noun = "messages: mark unknown"
	const statement = `
SELECT ` + stateColumns + ` FROM message_state s
WHERE s.pending > 0 AND s.scheduled <= $1 AND (s.account, s.id) > ($2, $3)
ORDER BY s.account, s.id LIMIT $4 {for update}`
	last := Ref{}
	for {
		var marked int
		list, err := db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) ([]state, error) {
			list, err := db.List(ctx, tx, noun, statement, stateFields, dueBy, last.Account, last.ID, db.SweepMost)
			if err != nil {
				return nil, err
			}
			marked = 0
			changed := make(map[Ref]*state, len(list))
			for i := range list {
				marked += list[i].markUnknown(dueBy, now, reason)
				list[i].schedule(now, s.db.Retention())
				changed[list[i].Ref] = &list[i]
			}
			return list, store(ctx, tx, noun, changed)
		})
		if err != nil {
			return count, err
		}
		count += marked
		if len(list) < db.SweepMost {
			return count, nil
		}
		last = list[len(list)-1].Ref
	}
}

// markUnknown is MarkUnknown for one message.
func (s *state) markUnknown(dueBy, now time.Time, reason string) (count int) {
	for i := range s.parts {
		p := &s.parts[i]
		if p.State == Pending && p.Due <= db.Millis(dueBy) {
			p.State, p.Changed, p.Reason = Unknown, db.Millis(now), reason
			count++
		}
	}
	if count > 0 {
		s.version++
		s.changed = true
	}
	return count
}
