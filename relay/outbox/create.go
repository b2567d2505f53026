package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// Create saves new deliveries with a lease. Those to ordered endpoints are given
// their places in a second step.
func (s *Store) Create(ctx context.Context, ds []Delivery, leaseUntil time.Time) (existing []int, err error) {
	if len(ds) == 0 {
		return nil, nil
	}
	return db.Transact(ctx, s.db, "deliveries: create", func(ctx context.Context, tx *db.Tx) ([]int, error) {
		return create(ctx, tx, ds, leaseUntil)
	})
}

// Create saves new deliveries like the store's Create, in the transaction of a caller,
// and returns those that are new.
func Create(ctx context.Context, tx *db.Tx, ds []Delivery, leaseUntil time.Time) ([]Delivery, error) {
	ds = slices.Clone(ds)
	existing, err := create(ctx, tx, ds, leaseUntil)
	if err != nil {
		return nil, err
	}
	added := ds[:0]
	for i := range ds {
		if _, found := slices.BinarySearch(existing, i); !found {
			added = append(added, ds[i])
		}
	}
	return added, nil
}

// create saves new deliveries and sets their states. It returns the places of those that
// exist, in their order.
func create(ctx context.Context, tx *db.Tx, ds []Delivery, leaseUntil time.Time) (existing []int, err error) {
	rows := db.BatchOf("id, account, created, kind, relay, message_id, originator, destination, doc",
		ds, func(d *Delivery) []any {
			return []any{d.ID, d.Account, db.Nanos(d.CreatedAt), d.Kind, d.Relay, d.MessageID, d.Originator, d.Destination, db.Sealed(db.JSON(kept(*d)), "delivery", d.Account)}
		})
	added, err := db.List(ctx, tx, "deliveries: create", `
INSERT INTO delivery (id, account, created, kind, relay, message_id, originator, destination, doc, state, due, leased)
SELECT id, account, created, kind, relay, message_id, originator, destination, doc, 'queued', CAST($1 AS BIGINT), 1 FROM batch WHERE true
ON CONFLICT (id, account) DO NOTHING
RETURNING id, account`, refFields, leaseUntil, rows)
	if err != nil {
		return nil, err
	}
	existing = without(ds, added)
	waiting, err := enqueue(ctx, tx, ordered(ds, existing))
	for i := range ds {
		d := &ds[i]
		d.State, d.Waits, d.NextAttemptAt = Queued, "", leaseUntil
		if waiting[refOf(d)] {
			d.Waits, d.NextAttemptAt = WaitsForTurn, time.Time{}
		}
	}
	return existing, err
}

// without returns the places of the deliveries that were not added.
func without(ds []Delivery, added []Ref) (places []int) {
	if len(added) == len(ds) {
		return nil
	}
	left := db.By(added, func(r Ref) Ref { return r })
	for i := range ds {
		r := refOf(&ds[i])
		if _, is := left[r]; !is {
			places = append(places, i)
		}
		delete(left, r) // the same once more is one that exists
	}
	return places
}

// ordered returns the deliveries to ordered endpoints, but for those at the given
// places.
func ordered(ds []Delivery, but []int) (all []member) {
	for i := range ds {
		if d := &ds[i]; d.Pace.Ordered && !slices.Contains(but, i) {
			all = append(all, member{refOf(d), d.EndpointName()})
		}
	}
	return all
}
