package deliveries

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	// lockEnded locks the deliveries that a replay changes.
	lockEnded = `SELECT d.id, d.account, d.queue, d.state FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
WHERE d.state NOT IN ('queued', 'retrying') AND ($1 = 1 OR d.state NOT IN ('delivered', 'simulated')) AND (d.expires = 0 OR d.expires > $2)
ORDER BY d.id, d.account {for update}`

	replay = `UPDATE delivery SET state = 'queued', reason = '', due = $1, leased = 0, tries = 0, waits = '', endpoint = '',
  held_until = 0, expires = 0
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account`
)

// Replay puts ended deliveries back to queued.
func (s *Store) Replay(ctx context.Context, refs []outbox.Ref, now time.Time, includeDelivered bool) (changed []outbox.Ref, err error) {
	for chunk := range slices.Chunk(refs, chunkSize) {
		var done []outbox.Ref
		err := s.db.Write(ctx, "deliveries: replay", func(ctx context.Context, tx *sqlstore.Tx) (err error) {
			done, err = s.replay(ctx, tx, chunk, now, includeDelivered)
			return err
		})
		if err != nil {
			return changed, err
		}
		changed = append(changed, done...)
	}
	return changed, nil
}

func (s *Store) replay(ctx context.Context, tx *sqlstore.Tx, refs []outbox.Ref, now time.Time, includeDelivered bool) ([]outbox.Ref, error) {
	all := int64(0)
	if includeDelivered {
		all = 1
	}
	ended, err := sqlstore.List(ctx, tx, "deliveries: replay", lockEnded, scanEnded, all, s.now(), keys(refs))
	if err != nil || len(ended) == 0 {
		return nil, err
	}
	ended = inOrder(ended, refs)
	changed, ordered, added := make([]outbox.Ref, len(ended)), []member(nil), make(map[outbox.State]int64)
	for i, e := range ended {
		changed[i] = e.ref
		added[e.state]--
		if e.queue != "" {
			ordered = append(ordered, e.member)
		}
	}
	rows := keys(changed)
	if _, err := tx.Exec(ctx, "deliveries: replay", replay, sqlstore.Millis(now), rows); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, "deliveries: replay", unsetDead, rows); err != nil {
		return nil, err
	}
	if _, err := enqueue(ctx, tx, ordered); err != nil {
		return nil, err
	}
	return changed, addEnded(ctx, tx, added)
}

// endedMember is a delivery that has ended, with its ordered queue if it has one.
type endedMember struct {
	member
	state outbox.State
}

func scanEnded(row *sql.Rows, e *endedMember) error {
	var acct int64
	var state string
	err := row.Scan(&e.ref.ID, &acct, &e.queue, &state)
	e.ref.Account, e.state = account.ID(acct), outbox.State(state)
	return err
}

// inOrder puts deliveries in the order of refs, each once.
func inOrder(all []endedMember, refs []outbox.Ref) []endedMember {
	place := make(map[outbox.Ref]int, len(refs))
	for i, r := range slices.Backward(refs) {
		place[r] = i
	}
	slices.SortFunc(all, func(a, b endedMember) int { return cmp.Compare(place[a.ref], place[b.ref]) })
	return slices.Compact(all)
}
