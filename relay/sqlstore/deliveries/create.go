package deliveries

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

const insert = `INSERT INTO delivery (id, account, created, kind, relay, message_id, originator, destination, doc, state, due, leased)
SELECT id, account, created, kind, relay, message_id, originator, destination, doc, 'queued', CAST($1 AS BIGINT), 1 FROM batch WHERE true
ON CONFLICT (id, account) DO NOTHING
RETURNING id, account`

// Create saves new deliveries with a lease. Those to ordered endpoints are given
// their places in a second step.
func (s *Store) Create(ctx context.Context, ds []outbox.Delivery, leaseUntil time.Time) (existing []int, err error) {
	if len(ds) == 0 {
		return nil, nil
	}
	rows := sqlstore.NewBatch("id text, account bigint, created bigint, kind text, relay text, message_id text, originator text, destination text, doc text")
	for i := range ds {
		d := &ds[i]
		doc, err := encode(d)
		if err != nil {
			return nil, err
		}
		rows.Add(d.ID, int64(d.Account), d.CreatedAt, string(d.Kind), d.Relay, d.MessageID, d.Originator, d.Destination, doc)
	}
	var waiting map[outbox.Ref]bool
	err = s.db.Write(ctx, "deliveries: create", func(ctx context.Context, tx *sqlstore.Tx) error {
		existing, waiting = nil, nil
		added, err := sqlstore.List(ctx, tx, "deliveries: create", insert, scanRef, sqlstore.Millis(leaseUntil), rows)
		if err != nil {
			return err
		}
		if len(added) < len(ds) {
			existing = without(ds, added)
		}
		waiting, err = enqueue(ctx, tx, ordered(ds, existing))
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range ds {
		d := &ds[i]
		d.State, d.NextAttemptAt = outbox.Queued, leaseUntil
		if waiting[outbox.Ref{Account: d.Account, ID: d.ID}] {
			d.Waits, d.NextAttemptAt = outbox.WaitsForTurn, time.Time{}
		}
	}
	return existing, nil
}

// without returns the places of the deliveries that were not added.
func without(ds []outbox.Delivery, added []outbox.Ref) (places []int) {
	left := make(map[outbox.Ref]bool, len(added))
	for _, r := range added {
		left[r] = true
	}
	for i := range ds {
		r := outbox.Ref{Account: ds[i].Account, ID: ds[i].ID}
		if !left[r] {
			places = append(places, i)
		}
		delete(left, r) // the same once more is one that exists
	}
	return places
}

// ordered returns the deliveries to ordered endpoints, but for those at the given
// places.
func ordered(ds []outbox.Delivery, but []int) (all []member) {
	for i := range ds {
		if d := &ds[i]; d.Pace.Ordered && !slices.Contains(but, i) {
			all = append(all, member{outbox.Ref{Account: d.Account, ID: d.ID}, d.Lane()})
		}
	}
	return all
}
