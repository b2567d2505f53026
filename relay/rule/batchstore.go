package rule

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/outbox"
)

// itemsKept is how long a frame that was sent in a batch is remembered.
const itemsKept = 24 * time.Hour

const lockBatches = `SELECT t.rule, t.n, t.due FROM batch AS b JOIN rule_batch AS t ON t.account = b.account AND t.rule = b.rule
ORDER BY t.rule {for update}`

// tally is a row of rule_batch.
type tally struct {
	rule string
	n    int
	due  time.Time
}

func (t *tally) fields() []any { return []any{&t.rule, &t.n, db.Time(&t.due)} }

// Collect adds frames to batches.
func (s *Store) Collect(ctx context.Context, acct relay.AccountID, items []Item) ([]BatchRef, error) {
	rules := make(map[string]Item)
	for _, it := range items {
		if _, known := rules[it.RuleID]; !known {
			rules[it.RuleID] = it
		}
	}
	keys := db.AccountColumn(acct, "rule", slices.Sorted(maps.Keys(rules)))
	return db.Transact(ctx, s.db, "batches: collect", func(ctx context.Context, tx *db.Tx) (full []BatchRef, err error) {
		if err := tx.Run(ctx, "batches: add", `
INSERT INTO rule_batch (account, rule)
SELECT b.account, b.rule FROM batch AS b
WHERE EXISTS (SELECT 1 FROM rule AS r WHERE r.account = b.account AND r.id = b.rule)
ORDER BY b.n ON CONFLICT (account, rule) DO NOTHING`, keys); err != nil {
			return nil, err
		}
		tallies, err := db.List(ctx, tx, "batches: lock", lockBatches, (*tally).fields, keys)
		if err != nil {
			return nil, err
		}
		there := db.By(tallies, func(t tally) string { return t.rule })
		added, err := addTo(ctx, tx, acct, there, items)
		if err != nil {
			return nil, err
		}
		for i := range tallies {
			t, of := &tallies[i], rules[tallies[i].rule]
			if t.due.IsZero() && t.n+added[t.rule] > 0 && of.Batch.Every > 0 {
				t.due = of.At.Add(of.Batch.Every)
			}
			if t.n += added[t.rule]; of.Batch.Count > 0 && t.n >= of.Batch.Count {
				full = append(full, BatchRef{Account: acct, RuleID: t.rule})
			}
		}
		return full, setTallies(ctx, tx, acct, tallies)
	})
}

// addTo adds frames to the batches that are there, and counts the new ones.
func addTo(ctx context.Context, tx *db.Tx, acct relay.AccountID, there map[string]tally, items []Item) (map[string]int, error) {
	rows := db.NewBatch("account, rule, record, frame_at, added, doc")
	for i := range items {
		if _, ok := there[items[i].RuleID]; ok { // else the rule was deleted
			o := items[i].Occurrence
			rows.Add(acct, items[i].RuleID, o.FrameKey(), db.Nanos(o.Time), items[i].At, db.JSON(o))
		}
	}
	of, err := db.Values[string](ctx, tx, "batches: collect", `
INSERT INTO rule_item (account, rule, record, frame_at, added, doc)
SELECT account, rule, record, frame_at, added, doc FROM batch WHERE true
ON CONFLICT (account, rule, record) DO NOTHING RETURNING rule`, rows)
	added := make(map[string]int)
	for _, id := range of {
		added[id]++
	}
	return added, err
}

func setTallies(ctx context.Context, tx *db.Tx, acct relay.AccountID, all []tally) error {
	return tx.Run(ctx, "batches: count", `
UPDATE rule_batch SET n = b.count, due = b.due FROM batch AS b WHERE rule_batch.account = b.account AND rule_batch.rule = b.rule`, db.BatchOf("account, rule, count, due", all, func(t *tally) []any {
		return []any{acct, t.rule, t.n, t.due}
	}))
}

// DueBatches returns batches that are due.
func (s *Store) DueBatches(ctx context.Context, now time.Time, most int) ([]BatchRef, error) {
	return db.List(ctx, s.db, "batches: due", "SELECT account, rule FROM rule_batch WHERE due > 0 AND due <= $1 ORDER BY due LIMIT $2",
		func(r *BatchRef) []any { return []any{&r.Account, &r.RuleID} }, now, most)
}

// item is a frame that waits.
type item struct {
	record     string
	occurrence Occurrence
}

// TakeBatch takes the frames of a batch and creates their deliveries.
func (s *Store) TakeBatch(ctx context.Context, ref BatchRef, b Batch, now, until time.Time, send func([]Occurrence) ([]outbox.Delivery, error)) (created []outbox.Delivery, more bool, err error) {
	noun := "batch of rule " + ref.RuleID
	most := mostTaken
	if b.Count > 0 {
		most = b.Count
	}
	one := db.BatchOf("account, rule", []BatchRef{ref}, func(r *BatchRef) []any { return []any{r.Account, r.RuleID} })
	created, err = db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) ([]outbox.Delivery, error) {
		more = false
		t, err := db.One(ctx, tx, noun, lockBatches, (*tally).fields, one)
		if db.IsNotFound(err) {
			return nil, nil
		}
		full, late := b.Count > 0 && t.n >= b.Count, !t.due.IsZero() && !t.due.After(now)
		if err != nil || !full && !late {
			return nil, err
		}
		items, err := db.List(ctx, tx, noun, `
SELECT record, doc FROM rule_item WHERE account = $1 AND rule = $2 AND taken = 0 ORDER BY frame_at, record LIMIT $3`, func(it *item) []any {
			return []any{&it.record, db.JSON(&it.occurrence)}
		}, ref.Account, ref.RuleID, most)
		if err != nil {
			return nil, err
		}
		t.n -= len(items)
		if more, err = s.leave(ctx, tx, ref, b, &t, now, items); err != nil || len(items) == 0 {
			return nil, err
		}
		occurrences := make([]Occurrence, len(items))
		for i := range items {
			occurrences[i] = items[i].occurrence
		}
		ds, err := send(occurrences)
		if err != nil {
			return nil, err
		}
		return outbox.Create(ctx, tx, ds, until)
	})
	return created, more && err == nil, err
}

// mostTaken is how many frames a request has at most if its batch has no count.
const mostTaken = 1000

// leave marks frames as sent and sets when those that stay are due. It reports whether
// these make another request.
func (s *Store) leave(ctx context.Context, tx *db.Tx, ref BatchRef, b Batch, t *tally, now time.Time, items []item) (more bool, err error) {
	noun := "batch of rule " + ref.RuleID
	rows := db.BatchOf("account, rule, record", items, func(it *item) []any { return []any{ref.Account, ref.RuleID, it.record} })
	if err := tx.Run(ctx, noun, `
UPDATE rule_item SET taken = $1, doc = '' FROM batch AS b
WHERE rule_item.account = b.account AND rule_item.rule = b.rule AND rule_item.record = b.record`, now, rows); err != nil {
		return false, err
	}
	first, err := db.Value[int64](ctx, tx, noun, `
SELECT COALESCE(MIN(added), 0) FROM rule_item WHERE account = $1 AND rule = $2 AND taken = 0`, ref.Account, ref.RuleID)
	if err != nil {
		return false, err
	}
	t.due = time.Time{}
	if first > 0 && b.Every > 0 {
		t.due = db.Moment(first).Add(b.Every)
	}
	if first == 0 {
		t.n = 0
	}
	more = b.Count > 0 && t.n >= b.Count || !t.due.IsZero() && !t.due.After(now)
	return more, setTallies(ctx, tx, ref.Account, []tally{*t})
}
