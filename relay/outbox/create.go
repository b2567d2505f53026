package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

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

// Create saves deliveries, queued and leased until a time, because the caller has the first
// attempts made at once. It returns those that are new, and sets their State and
// NextAttemptAt. A delivery that has to wait for its turn gets no lease: its Waits is set,
// and Dispatch passes over it. One whose id exists is unchanged and not returned.
func Create(ctx context.Context, tx *db.Tx, ds []Delivery, leaseUntil time.Time) (created []Delivery, err error) {
	const insert = `
		INSERT INTO delivery (id, account, created, kind, relay, message_id, originator, destination, doc, state, due, leased)
		SELECT id, account, created, kind, relay, message_id, originator, destination, doc, 'queued', CAST($1 AS BIGINT), 1
		FROM batch
		WHERE true
		ON CONFLICT (id, account) DO NOTHING
		RETURNING id, account`
	columns := "id, account, created, kind, relay, message_id, originator, destination, doc"
	rows := db.BatchOf(columns, ds, func(d *Delivery) []any {
		doc := db.Sealed(db.JSON(unchanging(*d)), "delivery", d.Account)
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
			delete(isNew, ref) // the second delivery of an id exists
			return existed
		})
	}
	var members []member
	for i := range created {
		d := &created[i]
		d.State, d.Waits, d.NextAttemptAt = Queued, "", leaseUntil
		if d.Pace.Ordered {
			members = append(members, member{refOf(d), d.EndpointName()})
		}
	}
	waiting, err := enqueue(ctx, tx, members)
	for i := range created {
		if d := &created[i]; waiting[refOf(d)] {
			d.Waits, d.NextAttemptAt = WaitsForTurn, time.Time{}
		}
	}
	return created, err
}

// unchanging returns what never changes of a delivery and has no column of its own. The
// account stays: it is read before doc, which would overwrite it.
func unchanging(d Delivery) Delivery {
	d.ID, d.Kind, d.Relay, d.MessageID = "", "", "", ""
	d.Originator, d.Destination = "", ""
	d.State, d.Reason, d.NextAttemptAt, d.Waits, d.ParkedUntil = "", "", time.Time{}, "", time.Time{}
	d.Tries, d.Attempts = 0, nil
	return d
}
