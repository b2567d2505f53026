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

// sweepGroupsMost is how many groups of parts one transaction of Sweep deletes.
const sweepGroupsMost = 1000

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
		if err := s.db.Sweep(ctx, "sweep of inbound messages", sqlstore.SweepMost, statement, now); err != nil {
			return err
		}
	}
	return s.sweepGroups(ctx, now)
}

const (
	expiredGroups = `
SELECT grp FROM part_group
WHERE due = 0 AND expires <= $1 AND NOT EXISTS (SELECT 1 FROM part_ready WHERE part_ready.grp = part_group.grp)
ORDER BY expires LIMIT $2 {skip locked}`

	deletePartsOf  = `DELETE FROM part WHERE grp IN (SELECT grp FROM batch)`
	deleteGroupsOf = `DELETE FROM part_group WHERE grp IN (SELECT grp FROM batch)`
)

func (s *Store) sweepGroups(ctx context.Context, now time.Time) error {
	const noun = "sweep of parts"
	return s.db.Repeat(ctx, noun, sweepGroupsMost, func(ctx context.Context, tx *sqlstore.Tx) (int, error) {
		expired, err := sqlstore.Values[string](ctx, tx, noun, expiredGroups, now, sweepGroupsMost)
		if err != nil {
			return 0, err
		}
		b := sqlstore.Column("grp text", expired)
		if _, err = tx.Exec(ctx, noun, deletePartsOf, b); err != nil {
			return 0, err
		}
		_, err = tx.Exec(ctx, noun, deleteGroupsOf, b)
		return len(expired), err
	})
}
