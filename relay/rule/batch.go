package rule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/outbox"
)

// collect adds frames to the batches of rules and sends the batches that are full.
func (s *Service) collect(ctx context.Context, acct relay.AccountID, set *ruleSet, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	full, err := s.deps.Transactions.Collect(ctx, acct, items)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	for _, ref := range full {
		if err := s.sendBatch(ctx, ref, set.programs[ref.RuleID]); err != nil && !errors.Is(err, errMinuteLimit) {
			return err
		}
	}
	return nil
}

// errMinuteLimit rolls back the transaction that takes a batch, so that the batch is sent in a later
// minute.
var errMinuteLimit = errors.New("the actions of the minute are used up")

// sendBatch sends the frames that a rule has collected, in requests of Batch.Count frames. It returns
// errMinuteLimit if the limit of the minute is reached. The remaining frames stay collected.
func (s *Service) sendBatch(ctx context.Context, ref BatchRef, p *Program) error {
	if p == nil {
		return nil // the rule is disabled or deleted; sendDueBatches handles its batch
	}
	for {
		d, b := &decisionDraft{}, s.newBudget(ref.Account)
		created, hasMore, err := s.deps.Transactions.TakeBatch(ctx, ref, p.Rule.Batch, s.o.Now(), s.deps.Deliveries.LeaseUntil(), func(occurrences []Occurrence) ([]outbox.Delivery, error) {
			b.rollback()
			d = &decisionDraft{firings: make([]firing, len(occurrences))}
			for i := range occurrences {
				occurrences[i].Rule = &p.Rule
				d.firings[i] = firing{program: p, Occurrence: occurrences[i]}
			}
			if p.Rule.Batch == (Batch{}) { // the rule no longer has a batch
				d.addDeliveries(b)
				return d.decision.Deliveries, nil
			}
			if len(occurrences) == 0 {
				return nil, nil
			}
			deliveries := d.createDeliveries(b, p, occurrences)
			if b.deferrable {
				return nil, errMinuteLimit
			}
			return deliveries, nil
		})
		if err != nil {
			b.rollback()
			return fmt.Errorf("batch of rule %s: %w", ref.RuleID, err)
		}
		b.commit(len(created))
		s.conclude(ref.Account, d, created)
		if !hasMore {
			return nil
		}
	}
}

// maxDueBatches is the largest number of due batches that sendDueBatches reads. It is large because
// batches of accounts at their limit stay due and must not delay those of other accounts.
const maxDueBatches = 1000

// sendDueBatches sends batches whose first frame has waited for Batch.Every.
func (s *Service) sendDueBatches(ctx context.Context) error {
	due, err := s.deps.Store.DueBatches(ctx, s.o.Now(), maxDueBatches)
	if err != nil {
		return err
	}
	var errs []error
	limited := make(map[relay.AccountID]bool) // accounts at the limit of the minute
	for _, ref := range due {
		if limited[ref.Account] {
			continue
		}
		// Frames that a rule collected before it was disabled are also sent.
		r, err := s.deps.Store.Rule(ctx, ref.Account, ref.RuleID)
		if err != nil && !errors.Is(err, relay.ErrUndecryptable) {
			errs = append(errs, err)
			continue
		}
		var p *Program
		if err == nil {
			p, err = Compile(&r)
		}
		if err != nil {
			s.failures.add(ref.Account, ref.RuleID, err, s.o.Now())
			continue
		}
		switch err := s.sendBatch(ctx, ref, p); {
		case errors.Is(err, errMinuteLimit):
			limited[ref.Account] = true
		case err != nil:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// itemRetention is the time for which the key of a frame is stored after it was sent in a batch.
const itemRetention = 24 * time.Hour

const lockBatches = `
		SELECT t.rule, t.n, t.due
		FROM batch AS b
		JOIN rule_batch AS t ON t.account = b.account AND t.rule = b.rule
		ORDER BY t.rule {for update}`

// tally counts the frames of a batch that have not been sent.
type tally struct {
	rule string
	n    int
	due  time.Time
}

func (t *tally) fields() []any { return []any{&t.rule, &t.n, db.Time(&t.due)} }

// Collect adds frames to the batches of rules. It ignores frames that were added before. It returns
// the full batches.
func (s *Store) Collect(ctx context.Context, acct relay.AccountID, items []Item) (full []BatchRef, err error) {
	const label = "batches: collect"
	const insertBatches = `
		INSERT INTO rule_batch (account, rule)
		SELECT b.account, b.rule
		FROM batch AS b
		WHERE EXISTS (SELECT 1 FROM rule AS r WHERE r.account = b.account AND r.id = b.rule)
		ORDER BY b.n
		ON CONFLICT (account, rule) DO NOTHING`
	const insertItems = `
		INSERT INTO rule_item (account, rule, record, frame_at, added, doc)
		SELECT account, rule, record, frame_at, added, doc
		FROM batch
		WHERE true
		ON CONFLICT (account, rule, record) DO NOTHING
		RETURNING rule`
	firstItems := make(map[string]Item)
	for _, item := range items {
		if _, exists := firstItems[item.RuleID]; !exists {
			firstItems[item.RuleID] = item
		}
	}
	keys := db.AccountColumn(acct, "rule", slices.Sorted(maps.Keys(firstItems)))
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (full []BatchRef, err error) {
		// 1. Lock the batches. Deleted rules have no batches.
		if err := tx.Run(ctx, label, insertBatches, keys); err != nil {
			return nil, err
		}
		tallies, err := db.List(ctx, tx, label, lockBatches, (*tally).fields, keys)
		if err != nil {
			return nil, err
		}
		byRule := db.IndexBy(tallies, func(t tally) string { return t.rule })
		// 2. Add the new frames.
		rows := db.NewBatch("account, rule, record, frame_at, added, doc")
		for i := range items {
			if _, ok := byRule[items[i].RuleID]; ok {
				o := items[i].Occurrence
				rows.Add(acct, items[i].RuleID, o.FrameKey(), db.Nanos(o.Time), items[i].CollectedAt, db.JSON(o))
			}
		}
		ruleIDs, err := db.Values[string](ctx, tx, label, insertItems, rows)
		if err != nil {
			return nil, err
		}
		added := make(map[string]int)
		for _, id := range ruleIDs {
			added[id]++
		}
		// 3. Count the frames and set the times at which the batches are due.
		for i := range tallies {
			t, item := &tallies[i], firstItems[tallies[i].rule]
			if t.due.IsZero() && t.n+added[t.rule] > 0 && item.Batch.Every > 0 {
				t.due = item.CollectedAt.Add(item.Batch.Every)
			}
			if t.n += added[t.rule]; item.Batch.Count > 0 && t.n >= item.Batch.Count {
				full = append(full, BatchRef{Account: acct, RuleID: t.rule})
			}
		}
		return full, saveTallies(ctx, tx, acct, tallies)
	})
}

func saveTallies(ctx context.Context, tx *db.Tx, acct relay.AccountID, tallies []tally) error {
	const update = `
		UPDATE rule_batch
		SET n = b.count, due = b.due
		FROM batch AS b
		WHERE rule_batch.account = b.account AND rule_batch.rule = b.rule`
	return tx.Run(ctx, "batches: count", update,
		db.BatchOf("account, rule, count, due", tallies, func(t *tally) []any { return []any{acct, t.rule, t.n, t.due} }))
}

// DueBatches returns up to limit batches that are due.
func (s *Store) DueBatches(ctx context.Context, now time.Time, limit int) ([]BatchRef, error) {
	const query = `
		SELECT account, rule
		FROM rule_batch
		WHERE due > 0 AND due <= $1
		ORDER BY due
		LIMIT $2`
	return db.List(ctx, s.db, "batches: due", query, func(r *BatchRef) []any { return []any{&r.Account, &r.RuleID} }, now, limit)
}

// maxBatchFrames is the largest number of frames in a request if the batch has no count.
const maxBatchFrames = 1000

type storedItem struct {
	record     string
	occurrence Occurrence
}

// TakeBatch takes the oldest frames of a batch if the batch is full or due: at most Batch.Count or,
// without a count, maxBatchFrames. It calls send, which returns the deliveries of the frames, and saves
// them in the same transaction. It returns the new deliveries and whether the batch is still full or due.
func (s *Store) TakeBatch(ctx context.Context, ref BatchRef, b Batch, now, leaseUntil time.Time, send func([]Occurrence) ([]outbox.Delivery, error)) (created []outbox.Delivery, hasMore bool, err error) {
	const selectItems = `
		SELECT record, doc
		FROM rule_item
		WHERE account = $1 AND rule = $2 AND taken = 0
		ORDER BY frame_at, record
		LIMIT $3`
	label := "batch of rule " + ref.RuleID
	limit := maxBatchFrames
	if b.Count > 0 {
		limit = b.Count
	}
	key := db.BatchOf("account, rule", []BatchRef{ref}, func(r *BatchRef) []any { return []any{r.Account, r.RuleID} })
	created, err = db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) ([]outbox.Delivery, error) {
		hasMore = false
		t, err := db.One(ctx, tx, label, lockBatches, (*tally).fields, key)
		if db.IsNotFound(err) {
			return nil, nil
		}
		if err != nil || !t.ready(b, now) {
			return nil, err
		}
		items, err := db.List(ctx, tx, label, selectItems, func(item *storedItem) []any {
			return []any{&item.record, db.JSON(&item.occurrence)}
		}, ref.Account, ref.RuleID, limit)
		if err != nil {
			return nil, err
		}
		if err := markTaken(ctx, tx, ref, b, &t, now, items); err != nil {
			return nil, err
		}
		if hasMore = t.ready(b, now); len(items) == 0 {
			return nil, nil
		}
		occurrences := make([]Occurrence, len(items))
		for i := range items {
			occurrences[i] = items[i].occurrence
		}
		deliveries, err := send(occurrences)
		if err != nil {
			return nil, err
		}
		return outbox.Create(ctx, tx, deliveries, leaseUntil)
	})
	return created, hasMore && err == nil, err
}

func (t *tally) ready(b Batch, now time.Time) bool {
	return b.Count > 0 && t.n >= b.Count || !t.due.IsZero() && !t.due.After(now)
}

// markTaken marks frames as taken and sets the tally to the remaining frames.
func markTaken(ctx context.Context, tx *db.Tx, ref BatchRef, b Batch, t *tally, now time.Time, items []storedItem) error {
	const update = `
		UPDATE rule_item
		SET taken = $1, doc = ''
		FROM batch AS b
		WHERE rule_item.account = b.account AND rule_item.rule = b.rule AND rule_item.record = b.record`
	const firstAdded = `
		SELECT COALESCE(MIN(added), 0)
		FROM rule_item
		WHERE account = $1 AND rule = $2 AND taken = 0`
	label := "batch of rule " + ref.RuleID
	rows := db.BatchOf("account, rule, record", items, func(item *storedItem) []any { return []any{ref.Account, ref.RuleID, item.record} })
	if err := tx.Run(ctx, label, update, now, rows); err != nil {
		return err
	}
	start, err := db.Value[int64](ctx, tx, label, firstAdded, ref.Account, ref.RuleID)
	if err != nil {
		return err
	}
	t.n -= len(items)
	t.due = time.Time{}
	if start > 0 && b.Every > 0 {
		t.due = db.FromMillis(start).Add(b.Every)
	}
	if start == 0 {
		t.n = 0
	}
	return saveTallies(ctx, tx, ref.Account, []tally{*t})
}
