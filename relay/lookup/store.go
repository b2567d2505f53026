package lookup

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store caches results until they expire, and stores the networks of the simulator. It is
// safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of lookups.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Get returns the cached result of a number; relay.KindNotFound if there is none.
func (s *Store) Get(ctx context.Context, number relay.MSISDN) (Result, error) {
	const query = `
		SELECT doc
		FROM lookup
		WHERE number = $1
		  AND (expires = 0 OR expires > $2)`
	return db.One(ctx, s.db, "lookup", query, db.Doc[Result], number, s.db.Now())
}

// Put caches the result of a number for ttl.
func (s *Store) Put(ctx context.Context, r Result, ttl time.Duration) error {
	return s.db.Run(ctx, "lookup", db.Upsert("lookup", "number", "doc, expires"), r.Number, db.JSON(r), s.db.Now().Add(ttl))
}

// Sweep deletes the results that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.SweepExpired(ctx, "lookup", "lookup", "number", "expires", now)
}

const networks db.Documents[Network] = "network"

// PutNetwork saves a row of the simulator's table.
func (s *Store) PutNetwork(ctx context.Context, n Network) error {
	return networks.Put(ctx, s.db, 0, n.Prefix, n)
}

// DeleteNetwork deletes a row of the simulator's table; relay.KindNotFound if there is none.
func (s *Store) DeleteNetwork(ctx context.Context, prefix string) error {
	return networks.Delete(ctx, s.db, 0, prefix)
}

// Networks returns the simulator's table by prefix.
func (s *Store) Networks(ctx context.Context) ([]Network, error) {
	return networks.All(ctx, s.db, 0)
}
