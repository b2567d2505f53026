package outbox

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

const queueLabel = "ordered queues"

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

// enqueue appends deliveries to their queues, in the order of members, and returns those that wait
// for their turn.
func enqueue(ctx context.Context, tx *db.Tx, members []member) (waiting map[Ref]bool, err error) {
	const lastPlaces = `
		SELECT b.account, b.queue, COALESCE((
		  SELECT MAX(d.place)
		  FROM delivery AS d
		  WHERE d.account = b.account AND d.queue = b.queue AND d.place > 0), 0)
		FROM batch AS b`
	const update = `
		UPDATE delivery
		SET queue = b.queue, place = b.place, waits = b.waits,
		  due = CASE WHEN b.waits = '' THEN delivery.due ELSE 0 END,
		  leased = CASE WHEN b.waits = '' THEN delivery.leased ELSE 0 END
		FROM batch AS b
		WHERE delivery.id = b.id AND delivery.account = b.account`
	lastPlace := make(map[queueKey]int64, len(members))
	for _, m := range members {
		lastPlace[m.key()] = 0
	}
	queues, err := lockQueues(ctx, tx, lastPlace)
	if err != nil {
		return nil, err
	}
	type queuePlace struct {
		queueKey
		place int64
	}
	places, err := db.List(ctx, tx, queueLabel, lastPlaces, func(p *queuePlace) []any {
		return []any{&p.account, &p.queue, &p.place}
	}, queues)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		lastPlace[p.queueKey] = p.place
	}
	waiting = make(map[Ref]bool)
	rows := db.NewBatch("id, account, queue, place, waits")
	for _, m := range members {
		var wait Wait
		if lastPlace[m.key()] > 0 {
			wait, waiting[m.ref] = WaitsForTurn, true
		}
		lastPlace[m.key()]++
		rows.Add(m.ref.ID, m.ref.Account, m.queue, lastPlace[m.key()], wait)
	}
	return waiting, tx.Run(ctx, queueLabel, update, rows)
}

// advance gives the turn to the first delivery of each queue, if that delivery waits for its turn.
// The delivery is due at the queue's time in turnTimes. advance returns these deliveries.
func advance(ctx context.Context, tx *db.Tx, turnTimes map[queueKey]int64) ([]Ref, error) {
	const update = `
		UPDATE delivery
		SET due = f.due, waits = ''
		FROM (
		  SELECT b.account, b.due, (
		    SELECT d.id
		    FROM delivery AS d
		    WHERE d.account = b.account AND d.queue = b.queue AND d.place > 0
		    ORDER BY d.place
		    LIMIT 1) AS id
		  FROM batch AS b) AS f
		WHERE delivery.id = f.id AND delivery.account = f.account AND delivery.waits = 'turn'
		RETURNING delivery.id, delivery.account`
	queues, err := lockQueues(ctx, tx, turnTimes)
	if err != nil {
		return nil, err
	}
	return db.List(ctx, tx, queueLabel, update, refFields, queues)
}

// lockQueues adds missing queues and locks all queues until the transaction ends, so that each
// gateway reads the places that other gateways have assigned. It returns the queues as a batch with
// the value of each queue in the column due.
func lockQueues(ctx context.Context, tx *db.Tx, values map[queueKey]int64) (*db.Batch, error) {
	const upsert = `
		INSERT INTO delivery_queue (account, queue)
		SELECT account, queue
		FROM batch
		WHERE true
		ORDER BY n
		ON CONFLICT (account, queue) DO UPDATE SET queue = excluded.queue`
	sorted := slices.SortedFunc(maps.Keys(values), func(a, b queueKey) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.queue, b.queue))
	})
	queues := db.NewBatch("account, queue, due")
	for _, k := range sorted {
		queues.Add(k.account, k.queue, values[k])
	}
	return queues, tx.Run(ctx, queueLabel, upsert, queues)
}
