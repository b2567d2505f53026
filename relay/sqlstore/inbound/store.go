package inbound

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/sqlstore"
)

var (
	_ inbound.Relays  = (*Store)(nil)
	_ inbound.Records = (*Store)(nil)
	_ inbound.Claims  = (*Store)(nil)
	_ inbound.Inbox   = (*Store)(nil)
	_ inbound.Parts   = (*Store)(nil)
)

// Store keeps what receiving messages needs. All gateways on one database share
// it.
type Store struct{ db *sqlstore.DB }

// New returns the store of a database.
func New(db *sqlstore.DB) *Store { return &Store{db: db} }

// sweepLimit is how many rows, or groups of parts, one transaction of Sweep
// deletes.
const (
	sweepLimit      = 5000
	sweepGroupLimit = 1000
)

const (
	sweepCarrierIDs = `
DELETE FROM carrier_id WHERE id IN (
  SELECT id FROM carrier_id WHERE expires <= $1 ORDER BY expires LIMIT $2 {skip locked})`

	sweepInbox = `
DELETE FROM inbox WHERE (account, relay, id) IN (
  SELECT account, relay, id FROM inbox WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked})`

	sweepParked = `
DELETE FROM part_parked WHERE (grp, event) IN (
  SELECT grp, event FROM part_parked WHERE expires <= $1 ORDER BY expires LIMIT $2 {skip locked})`
)

// Sweep deletes what has expired: carriers' ids, acknowledgements, parked
// messages, and groups of parts whose last message need not be remembered.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for _, statement := range []string{sweepCarrierIDs, sweepInbox, sweepParked} {
		for n := int64(sweepLimit); n == sweepLimit; {
			var err error
			if n, err = s.db.Exec(ctx, "sweep of inbound messages", statement, sqlstore.Millis(now), int64(sweepLimit)); err != nil {
				return err
			}
		}
	}
	for n := sweepGroupLimit; n == sweepGroupLimit; {
		var err error
		if n, err = s.sweepGroups(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

const (
	expiredGroups = `
SELECT grp FROM part_group
WHERE due = 0 AND expires <= $1 AND NOT EXISTS (SELECT 1 FROM part_ready WHERE part_ready.grp = part_group.grp)
ORDER BY expires LIMIT $2 {skip locked}`

	deletePartsOf  = `DELETE FROM part WHERE grp IN (SELECT grp FROM batch)`
	deleteGroupsOf = `DELETE FROM part_group WHERE grp IN (SELECT grp FROM batch)`
)

func (s *Store) sweepGroups(ctx context.Context, now time.Time) (int, error) {
	const noun = "sweep of parts"
	n := 0
	err := s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		expired, err := sqlstore.Values[string](ctx, tx, noun, expiredGroups, sqlstore.Millis(now), int64(sweepGroupLimit))
		n = len(expired)
		if err != nil || n == 0 {
			return err
		}
		b := sqlstore.NewBatch("grp text")
		for _, grp := range expired {
			b.Add(grp)
		}
		if _, err = tx.Exec(ctx, noun, deletePartsOf, b); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, noun, deleteGroupsOf, b)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
