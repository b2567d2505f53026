package lookups

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Store keeps what networks said, and the simulator's networks; it is a
// lookup.Cache.
type Store struct{ db *sqlstore.DB }

// New returns the store of lookups.
func New(db *sqlstore.DB) *Store { return &Store{db: db} }

// Remembered returns what a number's network said.
func (s *Store) Remembered(ctx context.Context, number relay.MSISDN) (lookup.Result, error) {
	return sqlstore.One(ctx, s.db, "lookup", "SELECT doc FROM lookup WHERE number = $1 AND (expires = 0 OR expires > $2)",
		sqlstore.ScanDoc[lookup.Result], string(number), sqlstore.Millis(s.db.Now()))
}

const upsertLookup = `
INSERT INTO lookup (number, doc, expires) VALUES ($1, $2, $3)
ON CONFLICT (number) DO UPDATE SET doc = excluded.doc, expires = excluded.expires`

// Remember keeps what a number's network said; keep 0 means for ever.
func (s *Store) Remember(ctx context.Context, r lookup.Result, keep time.Duration) error {
	doc, err := sqlstore.Encode(r)
	if err != nil {
		return fmt.Errorf("lookup: encode: %w", err)
	}
	var expires int64
	if keep > 0 {
		expires = sqlstore.Millis(s.db.Now().Add(keep))
	}
	_, err = s.db.Exec(ctx, "lookup", upsertLookup, string(r.Number), doc, expires)
	return err
}

// The outer condition spares a row that is remembered anew meanwhile.
const deleteExpired = `
DELETE FROM lookup
WHERE expires > 0 AND expires <= $1 AND number IN (
  SELECT number FROM lookup WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2)`

// Sweep deletes what is no longer remembered at a time.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	const most = 5000 // of one transaction
	for {
		n, err := s.db.Exec(ctx, "lookup", deleteExpired, sqlstore.Millis(now), int64(most))
		if err != nil || n < most {
			return err
		}
	}
}

func networks() sqlstore.Documents[lookup.Network] {
	return sqlstore.Documents[lookup.Network]{Noun: "network", Table: "network"}
}

// PutNetwork saves a row of the simulator's table.
func (s *Store) PutNetwork(ctx context.Context, n lookup.Network) error {
	return s.db.Write(ctx, "network "+n.Prefix, func(ctx context.Context, tx *sqlstore.Tx) error {
		return networks().Put(ctx, tx, 0, n.Prefix, n)
	})
}

// DeleteNetwork removes a row; relay.KindNotFound if there is none.
func (s *Store) DeleteNetwork(ctx context.Context, prefix string) error {
	return s.db.Write(ctx, "network "+prefix, func(ctx context.Context, tx *sqlstore.Tx) error {
		found, err := networks().Delete(ctx, tx, 0, prefix)
		if err == nil && !found {
			err = relay.Errorf(relay.KindNotFound, "network %s: not found", prefix)
		}
		return err
	})
}

// Networks returns the simulator's table by prefix.
func (s *Store) Networks(ctx context.Context) ([]lookup.Network, error) {
	return networks().All(ctx, s.db, 0)
}
