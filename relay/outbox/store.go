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

// chunkSize is the largest number of deliveries that a statement changes or loads, unless the caller
// sets a limit.
const chunkSize = 500

// Store stores deliveries. It is safe for concurrent use.
type Store struct {
	db *db.DB
	// For one page, List loads up to maxScanned deliveries to match texts, and compares up to
	// maxCompared with the filter, up to step in one statement.
	maxScanned, maxCompared, step int
}

// NewStore returns the store of deliveries in a database.
func NewStore(db *db.DB) *Store {
	return &Store{db: db, maxScanned: 10_000, maxCompared: 50_000, step: 10_000}
}

const columns = `d.account, d.doc, d.id, d.created, d.kind, d.relay, d.message_id, d.originator, d.destination,
		  d.state, d.reason, d.due, d.waits, d.held_until, d.tries`

// fields returns pointers to the fields of d in the order of columns. The columns after doc replace
// fields of doc.
func fields(d *Delivery) []any {
	doc := db.SealedOr(&d.Undecryptable, db.JSON(d), "delivery", &d.Account)
	return []any{
		&d.Account, doc, &d.ID, db.NanoTime(&d.CreatedAt), &d.Kind, &d.Relay, &d.MessageID, &d.Originator, &d.Destination,
		&d.State, &d.Reason, db.Time(&d.NextAttemptAt), &d.WaitsFor, db.Time(&d.ParkedUntil), &d.Tries,
	}
}

const selectByKeys = `
		SELECT ` + columns + `
		FROM batch AS b
		JOIN delivery AS d ON d.id = b.id AND d.account = b.account
		WHERE d.expires = 0 OR d.expires > $1`

// Get returns a delivery. It returns relay.KindNotFound if the account does not have it.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, id string) (Delivery, error) {
	return readOne(ctx, s.db, "delivery "+id, acct, id, s.db.Now())
}

// OfMessage returns the deliveries of a message, of all accounts, oldest first.
func (s *Store) OfMessage(ctx context.Context, messageID string) ([]Delivery, error) {
	const query = `
		SELECT ` + columns + `
		FROM delivery AS d
		WHERE d.message_id = $1 AND d.message_id <> ''
		  AND (d.expires = 0 OR d.expires > $2)`
	ds, err := read(ctx, s.db, "deliveries of message "+messageID, query, messageID, s.db.Now())
	slices.SortFunc(ds, func(a, b Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return ds, err
}

func readOne(ctx context.Context, c db.Conn, label string, acct relay.AccountID, id string, now time.Time) (Delivery, error) {
	const query = `
		SELECT ` + columns + `
		FROM delivery AS d
		WHERE d.id = $1 AND d.account = $2
		  AND (d.expires = 0 OR d.expires > $3)`
	ds, err := read(ctx, c, label, query, id, acct, now)
	if err == nil && len(ds) == 0 {
		err = db.NotFound(label)
	}
	if err != nil {
		return Delivery{}, err
	}
	return ds[0], nil
}

// read runs a query for the columns of deliveries and loads their attempts. If an outcome is
// recorded in the meantime, read may return its attempt with the previous state.
func read(ctx context.Context, c db.Conn, label, query string, args ...any) ([]Delivery, error) {
	const attempts = `
		SELECT a.delivery, a.account, a.at, a.duration, a.status, a.error, a.reason, a.response
		FROM batch AS b
		JOIN delivery_attempt AS a ON a.delivery = b.id AND a.account = b.account
		ORDER BY b.n, a.at`
	ds, err := db.List(ctx, c, label, query, fields, args...)
	if err != nil {
		return nil, err
	}
	byRef := make(map[Ref]*Delivery, len(ds))
	for i := range ds {
		byRef[refOf(&ds[i])] = &ds[i]
	}
	type row struct {
		Ref
		Attempt
	}
	rows, err := db.List(ctx, c, label, attempts, func(r *row) []any {
		return []any{&r.ID, &r.Account, db.NanoTime(&r.At), &r.Duration, &r.Status, &r.Error, &r.Reason, &r.Response}
	}, keysOf(ds))
	for _, r := range rows {
		d := byRef[r.Ref]
		d.Attempts = append(d.Attempts, r.Attempt)
	}
	return ds, err
}

func refOf(d *Delivery) Ref { return Ref{Account: d.Account, ID: d.ID} }

func refSet(refs []Ref) map[Ref]bool {
	set := make(map[Ref]bool, len(refs))
	for _, ref := range refs {
		set[ref] = true
	}
	return set
}

func refFields(r *Ref) []any { return []any{&r.ID, &r.Account} }

func keys(refs []Ref) *db.Batch { return db.BatchOf("id, account", refs, refFields) }

func keysOf(ds []Delivery) *db.Batch {
	return db.BatchOf("id, account", ds, func(d *Delivery) []any { return []any{d.ID, d.Account} })
}

// countParts is the number of rows over which the count of a state is spread.
const countParts = 64

// Counts returns the number of deliveries in each state. It counts deliveries that have
// not ended. The numbers of ended deliveries are stored, and change when deliveries end, are replayed
// or are swept.
func (s *Store) Counts(ctx context.Context) (map[State]int, error) {
	const query = `
		SELECT state, CAST(SUM(ended) AS BIGINT)
		FROM delivery_count
		GROUP BY state
		UNION ALL
		SELECT state, COUNT(*)
		FROM delivery
		WHERE state IN ('queued', 'retrying')
		GROUP BY state`
	counts, err := db.Map[State, int](ctx, s.db, "deliveries: count", query)
	for _, state := range States() {
		counts[state] += 0 // add a missing state to the map
	}
	return counts, err
}

// addEnded changes the counts of ended deliveries. It must come last in a transaction, because other
// transactions may wait for the row that it locks.
func addEnded(ctx context.Context, tx *db.Tx, counts map[State]int64) error {
	const upsert = `
		INSERT INTO delivery_count (part, state, ended)
		SELECT CAST($1 AS BIGINT), state, added
		FROM batch
		WHERE true
		ORDER BY n
		ON CONFLICT (part, state) DO UPDATE SET ended = delivery_count.ended + excluded.ended`
	rows := db.NewBatch("state, added")
	for _, state := range States() { // in one order, against deadlocks
		if counts[state] != 0 {
			rows.Add(state, counts[state])
		}
	}
	return tx.Run(ctx, "deliveries: count", upsert, rand.Int64N(countParts), rows)
}

// Sweep deletes the deliveries that have expired.
func (s *Store) Sweep(ctx context.Context) error {
	const expiredDead = `
		SELECT id, account
		FROM delivery
		WHERE state = 'dead' AND expires > 0 AND expires <= $1
		ORDER BY expires
		LIMIT $2 {skip locked}`
	// The index of the time of creation finds these: deliveries that are younger than the
	// retention have not expired.
	const expired = `
		SELECT id, account
		FROM delivery
		WHERE state = $1 AND created <= $2 AND expires > 0 AND expires <= $3
		ORDER BY created
		LIMIT $4 {skip locked}`
	now := s.db.Now()
	if err := s.sweep(ctx, expiredDead, now, db.MaxSweep); err != nil {
		return err
	}
	for _, state := range []State{Delivered, Simulated} {
		if err := s.sweep(ctx, expired, state, db.Nanos(now.Add(-s.db.Retention())), now, db.MaxSweep); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the deliveries that a query finds, until it finds fewer than its limit.
func (s *Store) sweep(ctx context.Context, query string, args ...any) error {
	const label = "deliveries: sweep"
	const deleteAttempts = `
		DELETE FROM delivery_attempt
		WHERE (delivery, account) IN (SELECT id, account FROM batch)`
	const deleteDeliveries = `
		DELETE FROM delivery
		WHERE (id, account) IN (SELECT id, account FROM batch)
		RETURNING state`
	return s.db.Repeat(ctx, label, db.MaxSweep, func(ctx context.Context, tx *db.Tx) (int, error) {
		refs, err := db.List(ctx, tx, label, query, refFields, args...)
		if err != nil {
			return 0, err
		}
		rows := keys(refs)
		if err := tx.RunAll(ctx, label, db.Do(deleteDeadTexts, rows), db.Do(deleteAttempts, rows)); err != nil {
			return 0, err
		}
		states, err := db.Values[State](ctx, tx, label, deleteDeliveries, rows)
		if err != nil {
			return 0, err
		}
		counts := make(map[State]int64)
		for _, state := range states {
			counts[state]--
		}
		return len(refs), addEnded(ctx, tx, counts)
	})
}

const createLabel = "deliveries: create"

// Create saves deliveries in a transaction of its own, see the function Create. After an
// error the same deliveries may be created again.
func (s *Store) Create(ctx context.Context, ds []Delivery, leaseUntil time.Time) (created []Delivery, err error) {
	if len(ds) == 0 {
		return nil, nil
	}
	return db.Transact(ctx, s.db, createLabel, func(ctx context.Context, tx *db.Tx) ([]Delivery, error) {
		return Create(ctx, tx, ds, leaseUntil)
	})
}

// Create saves deliveries under a lease until a time, because the caller dispatches their first
// attempts. It returns the new deliveries and sets their State and NextAttemptAt. A delivery that
// waits for its turn has no lease: its WaitsFor is set, and Dispatch skips it. Deliveries whose id
// exists are unchanged and not returned.
func Create(ctx context.Context, tx *db.Tx, ds []Delivery, leaseUntil time.Time) (created []Delivery, err error) {
	const insert = `
		INSERT INTO delivery (id, account, created, kind, relay, message_id, originator, destination, doc, state, due, leased)
		SELECT id, account, created, kind, relay, message_id, originator, destination, doc, 'queued', CAST($1 AS BIGINT), 1
		FROM batch
		WHERE true
		ON CONFLICT (id, account) DO NOTHING
		RETURNING id, account`
	insertColumns := "id, account, created, kind, relay, message_id, originator, destination, doc"
	rows := db.BatchOf(insertColumns, ds, func(d *Delivery) []any {
		// The document has the fields that never change and have no column. It also has the
		// account: the account's column is read first, and an empty account would overwrite it.
		document := *d
		document.ID, document.Kind, document.Relay, document.MessageID, document.Originator, document.Destination = "", "", "", "", "", ""
		document.State, document.Reason, document.NextAttemptAt, document.WaitsFor, document.ParkedUntil = "", "", time.Time{}, "", time.Time{}
		document.Tries, document.Attempts = 0, nil
		doc := db.Sealed(db.JSON(document), "delivery", d.Account)
		return []any{d.ID, d.Account, db.Nanos(d.CreatedAt), d.Kind, d.Relay, d.MessageID, d.Originator, d.Destination, doc}
	})
	added, err := db.List(ctx, tx, createLabel, insert, refFields, leaseUntil, rows)
	if err != nil {
		return nil, err
	}
	created = ds
	if len(added) < len(ds) {
		isNew := refSet(added)
		created = slices.DeleteFunc(slices.Clone(ds), func(d Delivery) bool {
			ref := refOf(&d)
			existed := !isNew[ref]
			delete(isNew, ref) // another delivery with this id is not new
			return existed
		})
	}
	var members []member
	for i := range created {
		d := &created[i]
		d.State, d.WaitsFor, d.NextAttemptAt = Queued, "", leaseUntil
		if d.Pace.Ordered {
			members = append(members, member{refOf(d), d.EndpointKey()})
		}
	}
	waiting, err := enqueue(ctx, tx, members)
	for i := range created {
		if d := &created[i]; waiting[refOf(d)] {
			d.WaitsFor, d.NextAttemptAt = WaitsForTurn, time.Time{}
		}
	}
	return created, err
}
