package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// ReplayAll requeues the ended deliveries that a filter selects, chunk by chunk, and returns their
// number. It replays only dead deliveries unless includeDelivered is set. The filter's Limit
// and Cursor are ignored. After an error, the previous chunks stay queued.
func (s *Store) ReplayAll(ctx context.Context, f Filter, includeDelivered bool, now func() time.Time) (int, error) {
	if f.State == "" && !includeDelivered {
		f.State = Dead
	}
	count := 0
	for f.Limit, f.Cursor = chunkSize, ""; ; {
		ds, nextCursor, err := s.List(ctx, f)
		if err != nil {
			return count, err
		}
		refs := make([]Ref, len(ds))
		for i := range ds {
			refs[i] = refOf(&ds[i])
		}
		replayed, err := s.Replay(ctx, refs, now(), includeDelivered)
		count += len(replayed)
		if f.Cursor = nextCursor; err != nil || nextCursor == "" {
			return count, err
		}
	}
}

// Replay requeues ended deliveries, due now and with Tries 0, and returns the deliveries that it
// changed, in the order of refs. It replays only dead deliveries unless includeDelivered is set.
func (s *Store) Replay(ctx context.Context, refs []Ref, now time.Time, includeDelivered bool) (replayed []Ref, err error) {
	for chunk := range slices.Chunk(refs, chunkSize) {
		changed, err := db.Transact(ctx, s.db, "deliveries: replay", func(ctx context.Context, tx *db.Tx) ([]Ref, error) {
			return replay(ctx, tx, chunk, now, includeDelivered)
		})
		if err != nil {
			return replayed, err
		}
		replayed = append(replayed, changed...)
	}
	return replayed, nil
}

func replay(ctx context.Context, tx *db.Tx, refs []Ref, now time.Time, includeDelivered bool) ([]Ref, error) {
	const label = "deliveries: replay"
	const lock = `
		SELECT d.id, d.account, d.queue, d.state
		FROM batch AS b
		JOIN delivery AS d ON d.id = b.id AND d.account = b.account
		WHERE d.state NOT IN ('queued', 'retrying')
		  AND ($1 = 1 OR d.state NOT IN ('delivered', 'simulated'))
		  AND (d.expires = 0 OR d.expires > $2)
		ORDER BY d.id, d.account {for update}`
	const requeue = `
		UPDATE delivery
		SET state = 'queued', reason = '', due = $1, leased = 0, tries = 0,
		  waits = '', endpoint = '', held_until = 0, expires = 0
		FROM batch AS b
		WHERE delivery.id = b.id AND delivery.account = b.account`
	type endedMember struct {
		member
		state State
	}
	endedFields := func(e *endedMember) []any { return append(e.member.fields(), &e.state) }
	ended, err := db.List(ctx, tx, label, lock, endedFields, includeDelivered, tx.Now(), keys(refs))
	if err != nil {
		return nil, err
	}
	indexes := make(map[Ref]int, len(refs))
	for i, ref := range slices.Backward(refs) {
		indexes[ref] = i
	}
	slices.SortFunc(ended, func(a, b endedMember) int { return cmp.Compare(indexes[a.ref], indexes[b.ref]) })
	ended = slices.Compact(ended) // refs may name a delivery twice

	changed := make([]Ref, len(ended))
	counts := make(map[State]int64)
	var members []member
	for i, e := range ended {
		changed[i] = e.ref
		counts[e.state]--
		if e.queue != "" {
			members = append(members, e.member)
		}
	}
	rows := keys(changed)
	if err := tx.RunAll(ctx, label, db.Do(requeue, now, rows), db.Do(deleteDeadTexts, rows)); err != nil {
		return nil, err
	}
	if _, err := enqueue(ctx, tx, members); err != nil {
		return nil, err
	}
	return changed, addEnded(ctx, tx, counts)
}
