package outbox

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// queueKey names the queue of an ordered endpoint.
type queueKey struct {
	account relay.AccountID
	queue   string
}

// member is a delivery of an ordered queue.
type member struct {
	ref   Ref
	queue string
}

func (m *member) key() queueKey { return queueKey{m.ref.Account, m.queue} }

func (m *member) fields() []any { return []any{&m.ref.ID, &m.ref.Account, &m.queue} }

// enqueue puts deliveries at the ends of their queues, in the order given, and
// returns those that wait for their turn.
func enqueue(ctx context.Context, tx *db.Tx, all []member) (waiting map[Ref]bool, err error) {
	last := make(map[queueKey]int64, len(all))
	for _, m := range all {
		last[m.key()] = 0
	}
	queues, err := lock(ctx, tx, last)
	if err != nil {
		return nil, err
	}
	type lastPlace struct {
		queueKey
		place int64
	}
	places, err := db.List(ctx, tx, "ordered queues", `
SELECT b.account, b.queue, COALESCE(
  (SELECT MAX(d.place) FROM delivery AS d WHERE d.account = b.account AND d.queue = b.queue AND d.place > 0), 0)
FROM batch AS b`,
		func(p *lastPlace) []any { return []any{&p.account, &p.queue, &p.place} }, queues)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		last[p.queueKey] = p.place
	}
	waiting = make(map[Ref]bool)
	rows := db.NewBatch("id, account, queue, place, waits")
	for _, m := range all {
		var wait Wait
		if last[m.key()] > 0 {
			wait, waiting[m.ref] = WaitsForTurn, true
		}
		last[m.key()]++
		rows.Add(m.ref.ID, m.ref.Account, m.queue, last[m.key()], wait)
	}
	return waiting, tx.Run(ctx, "ordered queues", `
UPDATE delivery SET queue = b.queue, place = b.place, waits = b.waits,
  due = CASE WHEN b.waits = '' THEN delivery.due ELSE 0 END,
  leased = CASE WHEN b.waits = '' THEN delivery.leased ELSE 0 END
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account`, rows)
}

// advanceAll makes the first delivery of each queue due at the given time, if it waits for
// its turn, and returns those.
func advanceAll(ctx context.Context, tx *db.Tx, due map[queueKey]int64) ([]Ref, error) {
	queues, err := lock(ctx, tx, due)
	if err != nil {
		return nil, err
	}
	return db.List(ctx, tx, "ordered queues", `
UPDATE delivery SET due = f.due, waits = ''
FROM (SELECT b.account, b.due, (
    SELECT d.id FROM delivery AS d WHERE d.account = b.account AND d.queue = b.queue AND d.place > 0 ORDER BY d.place LIMIT 1
  ) AS id FROM batch AS b) AS f
WHERE delivery.id = f.id AND delivery.account = f.account AND delivery.waits = 'turn'
RETURNING delivery.id, delivery.account`, refFields, queues)
}

// lock locks queues, which it makes if they are missing, until the transaction ends, so that each of several gateways
// sees the places that the others gave. It returns them as a batch, with the
// number of each.
func lock(ctx context.Context, tx *db.Tx, keys map[queueKey]int64) (*db.Batch, error) {
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b queueKey) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.queue, b.queue))
	})
	queues := db.NewBatch("account, queue, due")
	for _, k := range sorted {
		queues.Add(k.account, k.queue, keys[k])
	}
	return queues, tx.Run(ctx, "ordered queues", `
INSERT INTO delivery_queue (account, queue)
SELECT account, queue FROM batch WHERE true ORDER BY n
ON CONFLICT (account, queue) DO UPDATE SET queue = excluded.queue`, queues)
}
