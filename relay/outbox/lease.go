package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Due returns up to limit deliveries of all accounts whose next attempt is due, or whose lease ends,
// at cutoff or earlier, in the order of that time.
func (s *Store) Due(ctx context.Context, cutoff time.Time, limit int) ([]Ref, error) {
	const query = `
		SELECT id, account
		FROM delivery
		WHERE due > 0 AND due <= $1
		ORDER BY due
		LIMIT $2`
	return db.List(ctx, s.db, "due deliveries", query, refFields, cutoff, limit)
}

// Lease leases a delivery for the next attempt. leased is false if the delivery has ended, is not
// due, or is leased.
func (s *Store) Lease(ctx context.Context, acct relay.AccountID, id string, now, leaseUntil time.Time) (d Delivery, leased bool, err error) {
	// With due + 0 the engine does not use the index of due deliveries.
	const update = `
		UPDATE delivery AS d
		SET due = $1, leased = 1
		WHERE d.id = $2 AND d.account = $3
		  AND d.due + 0 BETWEEN 1 AND $4`
	label := "delivery " + id + ": lease"
	d, err = db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (Delivery, error) {
		n, err := tx.Exec(ctx, label, update, leaseUntil, id, acct, now)
		if err != nil {
			return Delivery{}, err
		}
		leased = n > 0
		return readOne(ctx, tx, label, acct, id, tx.Now())
	})
	return d, leased && err == nil, err
}

// LeaseDue leases the deliveries among refs that are due, and returns them.
func (s *Store) LeaseDue(ctx context.Context, refs []Ref, now, leaseUntil time.Time) ([]Delivery, error) {
	const label = "deliveries: lease"
	const update = `
		UPDATE delivery
		SET due = $1, leased = 1
		FROM batch AS b
		WHERE delivery.id = b.id AND delivery.account = b.account
		  AND delivery.due + 0 BETWEEN 1 AND $2
		RETURNING delivery.id, delivery.account`
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) ([]Delivery, error) {
		leased, err := db.List(ctx, tx, label, update, refFields, leaseUntil, now, keys(refs))
		if err != nil {
			return nil, err
		}
		return read(ctx, tx, label, selectByKeys, tx.Now(), keys(leased))
	})
}

// Renew extends leases and returns the deliveries whose lease the caller still has. A delivery that
// has ended, or that another process has leased since, is unchanged.
func (s *Store) Renew(ctx context.Context, leases []Lease, leaseUntil time.Time) ([]Ref, error) {
	return s.moveLeases(ctx, "deliveries: renew", leases, leaseUntil, true)
}

// Release ends leases without an attempt: the next attempt is due at due. A delivery that is not
// leased is unchanged.
func (s *Store) Release(ctx context.Context, leases []Lease, due time.Time) error {
	_, err := s.moveLeases(ctx, "deliveries: release", leases, due, false)
	return err
}

func (s *Store) moveLeases(ctx context.Context, label string, leases []Lease, due time.Time, leased bool) (moved []Ref, err error) {
	// If another process has taken the lease since, the lease ends later than l.End.
	const update = `
		UPDATE delivery
		SET due = $1, leased = $2
		FROM batch AS b
		WHERE delivery.id = b.id AND delivery.account = b.account
		  AND delivery.leased = 1
		  AND delivery.due + 0 <= b.ends
		RETURNING delivery.id, delivery.account`
	leases = db.FirstOfEach(leases, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Ref.ID, b.Ref.ID), cmp.Compare(a.Ref.Account, b.Ref.Account))
	})
	for chunk := range slices.Chunk(leases, chunkSize) {
		rows := db.BatchOf("id, account, ends", chunk, func(l *Lease) []any { return []any{l.Ref.ID, l.Ref.Account, l.End} })
		refs, err := db.Returning(ctx, s.db, label, update, refFields, due, leased, rows)
		if err != nil {
			return moved, err
		}
		moved = append(moved, refs...)
	}
	return moved, nil
}
