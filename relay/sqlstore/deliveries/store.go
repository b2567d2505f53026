// Package deliveries keeps deliveries in SQL: it is the outbox.Store.
//
// # Writes
//
// Every delivery is written twice: when it is created, leased to the gateway that
// makes the first attempt at once, and when its outcome is recorded. Both take
// batches: the usual case is one insert, and one insert of the attempts with one update
// of the deliveries and one of the counts. What is rare takes further statements, only
// when a batch has it: ordered endpoints, dead deliveries, outcomes that come twice or
// after the end.
//
// An attempt is a row whose key is the delivery and the time: an outcome that comes
// twice finds its attempt there. Each secondary index of deliveries costs at both
// writes; what is rare has partial ones, see the migration. The deliveries that have
// ended are counted when they end, as there are too many to count for each request.
//
// A statement with a batch must find its rows by their keys. PostgreSQL chooses
// by its statistics, which know nothing of a burst, so conditions on what has an
// index of its own (state, due, place) are written so that no index is read for
// them.
//
// # Ordered endpoints
//
// The deliveries of an ordered endpoint stand in a queue and have places in it.
// Places and turns are given out under a lock of the queue's row, so that all
// gateways together attempt one at a time, in one order.
//
// # Lists
//
// Lists are in the order of creation, newest first, read from the index of the
// state or of the account. Kind, relay and number are compared on the way. Texts
// are matched here, in any case and any script, by what package strings says: among
// dead deliveries, whose lower-cased texts have a narrow table, after a scan of it;
// among all others after a scan of the deliveries themselves, which ends after a
// while with a page that is not full and the cursor where it goes on. A trigram
// index was not needed: 100,000 dead deliveries are searched in about 0.1 s.
package deliveries

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/outbox"
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

var _ outbox.Store = (*Store)(nil)

// New returns the store of deliveries in a database.
func New(db *db.DB) *Store {
	return &Store{db: db, scanMost: 20_000, compareMost: 50_000, step: 10_000}
}

// columns are what fields reads.
const columns = `d.account, d.doc, d.id, d.created, d.kind, d.relay, d.message_id, d.originator, d.destination, d.state,
d.reason, d.due, d.waits, d.held_until, d.tries `

const load = `SELECT ` + columns + `FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
WHERE d.expires = 0 OR d.expires > $1`

// Get loads one delivery.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, id string) (outbox.Delivery, error) {
	return readOne(ctx, s.db, "delivery "+id, acct, id, s.db.Now())
}

// OfMessage returns the deliveries of a message, of all accounts, oldest first.
func (s *Store) OfMessage(ctx context.Context, messageID string) ([]outbox.Delivery, error) {
	ds, err := read(ctx, s.db, "deliveries of message "+messageID, `
SELECT `+columns+`FROM delivery AS d
WHERE d.message_id = $1 AND d.message_id <> '' AND (d.expires = 0 OR d.expires > $2)`, messageID, s.db.Now())
	slices.SortFunc(ds, func(a, b outbox.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return ds, err
}

// kept is what never changes of a delivery, without what has a column. The account stays:
// it is read before doc, which would overwrite it.
func kept(d outbox.Delivery) outbox.Delivery {
	d.ID, d.Kind, d.Relay, d.MessageID = "", "", "", ""
	d.Originator, d.Destination = "", ""
	d.State, d.Reason, d.NextAttemptAt, d.Waits, d.ParkedUntil = "", "", time.Time{}, "", time.Time{}
	d.Tries, d.Attempts = 0, nil
	return d
}

// fields are columns; those after doc count more than it does.
func fields(d *outbox.Delivery) []any {
	return []any{
		&d.Account, db.SealedOr(&d.Unopened, db.JSON(d), "delivery", &d.Account), &d.ID, db.NanoTime(&d.CreatedAt), &d.Kind, &d.Relay, &d.MessageID, &d.Originator, &d.Destination, &d.State,
		&d.Reason, db.Time(&d.NextAttemptAt), &d.Waits, db.Time(&d.ParkedUntil), &d.Tries,
	}
}

func refOf(d *outbox.Delivery) outbox.Ref { return outbox.Ref{Account: d.Account, ID: d.ID} }

// keys is the keys of deliveries as a batch; refFields are the columns of one.
func keys(refs []outbox.Ref) *db.Batch {
	return db.BatchOf("id, account", refs, refFields)
}

func keysOf(ds []outbox.Delivery) *db.Batch {
	return db.BatchOf("id, account", ds, func(d *outbox.Delivery) []any { return []any{d.ID, d.Account} })
}

func refFields(r *outbox.Ref) []any { return []any{&r.ID, &r.Account} }

// countParts is among how many rows the count of a state is spread.
const countParts = 64

// Counts returns how many deliveries there are by state. Those under way are few
// enough to be counted; those that have ended are counted when they end, and
// until they are swept.
func (s *Store) Counts(ctx context.Context) (map[outbox.State]int, error) {
	found, err := db.Map[outbox.State, int](ctx, s.db, "deliveries: count", `
SELECT state, CAST(SUM(ended) AS BIGINT) FROM delivery_count GROUP BY state
UNION ALL SELECT state, COUNT(*) FROM delivery WHERE state IN ('queued', 'retrying') GROUP BY state`)
	for _, state := range outbox.States() {
		found[state] += 0 // each state is there
	}
	return found, err
}

// addEnded adds to the counts of deliveries that have ended. It is the last of a
// transaction, as others may wait for its row.
func addEnded(ctx context.Context, tx *db.Tx, added map[outbox.State]int64) error {
	rows := db.NewBatch("state, added")
	for _, state := range outbox.States() { // in one order, against deadlocks
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
	for _, state := range []outbox.State{outbox.Delivered, outbox.Simulated} {
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
		states, err := db.Values[outbox.State](ctx, tx, noun, `
DELETE FROM delivery WHERE (id, account) IN (SELECT id, account FROM batch)
RETURNING state`, rows)
		if err != nil {
			return 0, err
		}
		added := make(map[outbox.State]int64)
		for _, state := range states {
			added[state]--
		}
		return len(refs), addEnded(ctx, tx, added)
	})
}
