package outbox

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// chunkSize is how many deliveries one statement changes or loads where no caller
// sets a bound.
const chunkSize = 500

// Store keeps deliveries. It is safe for concurrent use.
type Store struct {
	db *db.DB
	// scanMost is how many deliveries one page of a list reads for texts that no
	// index has.
	scanMost int
	// compareMost is how many deliveries one page compares with a filter that no index
	// has, and step how many one statement does.
	compareMost, step int
}

// NewStore returns the store of deliveries in a database.
func NewStore(db *db.DB) *Store {
	return &Store{db: db, scanMost: 20_000, compareMost: 50_000, step: 10_000}
}

// columns are what fields reads.
const columns = `d.account, d.doc, d.id, d.created, d.kind, d.relay, d.message_id, d.originator, d.destination, d.state,
d.reason, d.due, d.waits, d.held_until, d.tries `

const load = `SELECT ` + columns + `FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
WHERE d.expires = 0 OR d.expires > $1`

// Get loads one delivery.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, id string) (Delivery, error) {
	return readOne(ctx, s.db, "delivery "+id, acct, id, s.db.Now())
}

// OfMessage returns the deliveries of a message, of all accounts, oldest first.
func (s *Store) OfMessage(ctx context.Context, messageID string) ([]Delivery, error) {
	ds, err := read(ctx, s.db, "deliveries of message "+messageID, `
SELECT `+columns+`FROM delivery AS d
WHERE d.message_id = $1 AND d.message_id <> '' AND (d.expires = 0 OR d.expires > $2)`, messageID, s.db.Now())
	slices.SortFunc(ds, func(a, b Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return ds, err
}

// kept is what never changes of a delivery, without what has a column. The account stays:
// it is read before doc, which would overwrite it.
func kept(d Delivery) Delivery {
	d.ID, d.Kind, d.Relay, d.MessageID = "", "", "", ""
	d.Originator, d.Destination = "", ""
	d.State, d.Reason, d.NextAttemptAt, d.Waits, d.ParkedUntil = "", "", time.Time{}, "", time.Time{}
	d.Tries, d.Attempts = 0, nil
	return d
}

// fields are columns; those after doc count more than it does.
func fields(d *Delivery) []any {
	return []any{
		&d.Account, db.SealedOr(&d.Unopened, db.JSON(d), "delivery", &d.Account), &d.ID, db.NanoTime(&d.CreatedAt), &d.Kind, &d.Relay, &d.MessageID, &d.Originator, &d.Destination, &d.State,
		&d.Reason, db.Time(&d.NextAttemptAt), &d.Waits, db.Time(&d.ParkedUntil), &d.Tries,
	}
}

func refOf(d *Delivery) Ref { return Ref{Account: d.Account, ID: d.ID} }

// keys is the keys of deliveries as a batch; refFields are the columns of one.
func keys(refs []Ref) *db.Batch {
	return db.BatchOf("id, account", refs, refFields)
}

func keysOf(ds []Delivery) *db.Batch {
	return db.BatchOf("id, account", ds, func(d *Delivery) []any { return []any{d.ID, d.Account} })
}

func refFields(r *Ref) []any { return []any{&r.ID, &r.Account} }

// countParts is among how many rows the count of a state is spread.
const countParts = 64

// Counts returns how many deliveries there are by state. Those under way are few
// enough to be counted; those that have ended are counted when they end, and
// until they are swept.
func (s *Store) Counts(ctx context.Context) (map[State]int, error) {
	found, err := db.Map[State, int](ctx, s.db, "deliveries: count", `
SELECT state, CAST(SUM(ended) AS BIGINT) FROM delivery_count GROUP BY state
UNION ALL SELECT state, COUNT(*) FROM delivery WHERE state IN ('queued', 'retrying') GROUP BY state`)
	for _, state := range States() {
		found[state] += 0 // each state is there
	}
	return found, err
}

// addEnded adds to the counts of deliveries that have ended. It is the last of a
// transaction, as others may wait for its row.
func addEnded(ctx context.Context, tx *db.Tx, added map[State]int64) error {
	rows := db.NewBatch("state, added")
	for _, state := range States() { // in one order, against deadlocks
		if added[state] != 0 {
			rows.Add(state, added[state])
		}
	}
	return tx.Run(ctx, "deliveries: count", `
INSERT INTO delivery_count (part, state, ended)
SELECT CAST($1 AS BIGINT), state, added FROM batch WHERE true ORDER BY n
ON CONFLICT (part, state) DO UPDATE SET ended = delivery_count.ended + excluded.ended`, rand.Int64N(countParts), rows)
}

// Sweep deletes the deliveries that have expired.
func (s *Store) Sweep(ctx context.Context) error {
	now := s.db.Now()
	err := s.sweep(ctx, `
SELECT id, account FROM delivery
WHERE state = 'dead' AND expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked}`, now, db.SweepMost)
	if err != nil {
		return err
	}
	// These are found by the time of creation, which needs no further index: what was created
	// so late has not expired.
	for _, state := range []State{Delivered, Simulated} {
		err = s.sweep(ctx, `
SELECT id, account FROM delivery
WHERE state = $1 AND created <= $2 AND expires > 0 AND expires <= $3 ORDER BY created LIMIT $4 {skip locked}`,
			state, db.Nanos(now.Add(-s.db.Retention())), now, db.SweepMost)
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes what a query finds, until it finds less than it may.
func (s *Store) sweep(ctx context.Context, query string, args ...any) error {
	const noun = "deliveries: sweep"
	return s.db.Repeat(ctx, noun, db.SweepMost, func(ctx context.Context, tx *db.Tx) (int, error) {
		refs, err := db.List(ctx, tx, noun, query, refFields, args...)
		if err != nil {
			return 0, err
		}
		rows := keys(refs)
		if err := tx.RunAll(ctx, noun, db.Do(unsetDead, rows), db.Do(deleteAttempts, rows)); err != nil {
			return 0, err
		}
		states, err := db.Values[State](ctx, tx, noun, `
DELETE FROM delivery WHERE (id, account) IN (SELECT id, account FROM batch)
RETURNING state`, rows)
		if err != nil {
			return 0, err
		}
		added := make(map[State]int64)
		for _, state := range states {
			added[state]--
		}
		return len(refs), addEnded(ctx, tx, added)
	})
}
