package sims

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Subscribers keeps subscribers.
type Subscribers struct {
	db    *sqlstore.DB
	turns turns
	size  int // of a block
}

// NewSubscribers returns the store of subscribers.
func NewSubscribers(db *sqlstore.DB) *Subscribers {
	return &Subscribers{db: db, turns: make(turns, maxTurns), size: blockSize}
}

// Get loads a subscriber.
func (s *Subscribers) Get(ctx context.Context, acct account.ID, id string) (sim.Subscriber, error) {
	return sqlstore.One(ctx, s.db, "subscriber "+id, "SELECT doc FROM sim_subscriber WHERE account = $1 AND id = $2",
		sqlstore.ScanDoc[sim.Subscriber], int64(acct), id)
}

// folded is a name without regard to case. A control character would have no
// place in the order of keys.
func folded(name string) string {
	return strings.Map(func(r rune) rune { return max(r, ' ') }, strings.ToLower(name))
}

const lockSubscriber = `
SELECT forename, surname FROM sim_subscriber WHERE account = $1 AND id = $2 {for update}`

func scanNames(row *sql.Rows, names *[2]string) error { return row.Scan(&names[0], &names[1]) }

const insertSubscriber = `
INSERT INTO sim_subscriber (account, id, forename, surname, doc) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account, id) DO NOTHING`

const updateSubscriber = `
UPDATE sim_subscriber SET forename = $1, surname = $2, doc = $3 WHERE account = $4 AND id = $5`

// Put saves a new subscriber. One that is there, because a job runs again, is
// replaced.
func (s *Subscribers) Put(ctx context.Context, acct account.ID, who sim.Subscriber) error {
	noun := "subscriber " + who.ID
	doc, err := sqlstore.Encode(who)
	if err != nil {
		return relay.Errorf(relay.KindUnexpected, "%s: encode: %w", noun, err)
	}
	is := []string{who.ID, folded(who.Forename), folded(who.Surname)}
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		c := change{in: subscribersOf(acct), is: is}
		n, err := tx.Exec(ctx, noun, insertSubscriber, int64(acct), who.ID, is[1], is[2], doc)
		if err != nil {
			return err
		}
		if n == 0 {
			names, err := sqlstore.One(ctx, tx, noun, lockSubscriber, scanNames, int64(acct), who.ID)
			if err != nil {
				return err
			}
			c.was = []string{who.ID, names[0], names[1]}
			if _, err := tx.Exec(ctx, noun, updateSubscriber, is[1], is[2], doc, int64(acct), who.ID); err != nil {
				return err
			}
		}
		return recount(ctx, tx, acct, s.size, []change{c})
	})
}

const selectSubscribers = `
SELECT doc FROM batch JOIN sim_subscriber ON account = $1 AND id = wanted
ORDER BY batch.n`

// List returns a page of an account's subscribers.
func (s *Subscribers) List(ctx context.Context, acct account.ID, q sim.Query) ([]sim.Subscriber, int, error) {
	q.Filters = slices.Clone(q.Filters)
	for i := range q.Filters {
		q.Filters[i].Value = folded(q.Filters[i].Value)
	}
	ids, total, err := subscribersOf(acct).page(ctx, s.db, s.turns, q)
	if err != nil || len(ids) == 0 {
		return nil, total, err
	}
	b := sqlstore.NewBatch("wanted text")
	for _, id := range ids {
		b.Add(id)
	}
	out, err := sqlstore.List(ctx, s.db, "subscribers", selectSubscribers, sqlstore.ScanDoc[sim.Subscriber], int64(acct), b)
	return out, total, err
}
