package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// Replay puts ended deliveries back to queued.
func (s *Store) Replay(ctx context.Context, refs []Ref, now time.Time, includeDelivered bool) (changed []Ref, err error) {
	for chunk := range slices.Chunk(refs, chunkSize) {
		done, err := db.Transact(ctx, s.db, "deliveries: replay", func(ctx context.Context, tx *db.Tx) ([]Ref, error) {
			return s.replay(ctx, tx, chunk, now, includeDelivered)
		})
		if err != nil {
			return changed, err
		}
		changed = append(changed, done...)
	}
	return changed, nil
}

func (s *Store) replay(ctx context.Context, tx *db.Tx, refs []Ref, now time.Time, includeDelivered bool) ([]Ref, error) {
	const noun = "deliveries: replay"
	ended, err := db.List(ctx, tx, noun, `
SELECT d.id, d.account, d.queue, d.state FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
WHERE d.state NOT IN ('queued', 'retrying') AND ($1 = 1 OR d.state NOT IN ('delivered', 'simulated')) AND (d.expires = 0 OR d.expires > $2)
ORDER BY d.id, d.account {for update}`, (*endedMember).fields, includeDelivered, tx.Now(), keys(refs))
	if err != nil {
		return nil, err
	}
	ended = inOrder(ended, refs)
	changed, ordered, added := make([]Ref, len(ended)), []member(nil), make(map[State]int64)
	for i, e := range ended {
		changed[i] = e.ref
		added[e.state]--
		if e.queue != "" {
			ordered = append(ordered, e.member)
		}
	}
	rows := keys(changed)
	err = tx.RunAll(ctx, noun, db.Do(`
UPDATE delivery SET state = 'queued', reason = '', due = $1, leased = 0, tries = 0, waits = '', endpoint = '',
  held_until = 0, expires = 0
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account`, now, rows), db.Do(unsetDead, rows))
	if err != nil {
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
	state State
}

func (e *endedMember) fields() []any { return append(e.member.fields(), &e.state) }

// inOrder puts deliveries in the order of refs, each once.
func inOrder(all []endedMember, refs []Ref) []endedMember {
	place := make(map[Ref]int, len(refs))
	for i, r := range slices.Backward(refs) {
		place[r] = i
	}
	slices.SortFunc(all, func(a, b endedMember) int { return cmp.Compare(place[a.ref], place[b.ref]) })
	return slices.Compact(all)
}
