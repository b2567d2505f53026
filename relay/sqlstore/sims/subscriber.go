package sims

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Subscribers keeps subscribers.
type Subscribers struct{ lists }

// NewSubscribers returns the store of subscribers.
func NewSubscribers(db *sqlstore.DB) *Subscribers { return &Subscribers{newLists(db)} }

// Get loads a subscriber.
func (s *Subscribers) Get(ctx context.Context, acct account.ID, id string) (sim.Subscriber, error) {
	return sqlstore.One(ctx, s.db, "subscriber "+id, "SELECT doc FROM sim_subscriber WHERE account = $1 AND id = $2",
		sqlstore.Doc[sim.Subscriber], acct, id)
}

// folded is a name without regard to case. A control character would have no
// place in the order of keys.
func folded(name string) string {
	return strings.Map(func(r rune) rune { return max(r, ' ') }, strings.ToLower(name))
}

// Put saves a new subscriber. One that is there, because a job runs again, is
// replaced.
func (s *Subscribers) Put(ctx context.Context, acct account.ID, who sim.Subscriber) error {
	noun := "subscriber " + who.ID
	forename, surname := folded(who.Forename), folded(who.Surname)
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		c := change{in: subscribersOf(acct), is: []string{who.ID, forename, surname}}
		n, err := tx.Exec(ctx, noun, `
INSERT INTO sim_subscriber (account, id, forename, surname, doc) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account, id) DO NOTHING`, acct, who.ID, forename, surname, sqlstore.JSON(who))
		if err != nil {
			return err
		}
		if n == 0 {
			was, err := sqlstore.One(ctx, tx, noun, `
SELECT id, forename, surname FROM sim_subscriber WHERE account = $1 AND id = $2 {for update}`, func(was *[3]string) []any { return []any{&was[0], &was[1], &was[2]} }, acct, who.ID)
			if err != nil {
				return err
			}
			c.was = was[:]
			if err := tx.Run(ctx, noun, `
UPDATE sim_subscriber SET forename = $1, surname = $2, doc = $3 WHERE account = $4 AND id = $5`, forename, surname, sqlstore.JSON(who), acct, who.ID); err != nil {
				return err
			}
		}
		return recount(ctx, tx, acct, s.size, []change{c})
	})
}

// List returns a page of an account's subscribers.
func (s *Subscribers) List(ctx context.Context, acct account.ID, q sim.Query) ([]sim.Subscriber, int, error) {
	q.Filters = slices.Clone(q.Filters)
	for i := range q.Filters {
		q.Filters[i].Value = folded(q.Filters[i].Value)
	}
	return readPage(ctx, s.lists, subscribersOf(acct), q, "doc", sqlstore.Doc[sim.Subscriber])
}
