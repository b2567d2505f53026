package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Subscribers keeps subscribers.
type Subscribers struct{ db *db.DB }

// NewSubscribers returns the store of subscribers.
func NewSubscribers(database *db.DB) *Subscribers { return &Subscribers{db: database} }

// subscriberTable is the table of subscribers, and their list in sim_count.
const subscriberTable = "sim_subscriber"

// Get loads a subscriber.
func (s *Subscribers) Get(ctx context.Context, acct relay.AccountID, id string) (Subscriber, error) {
	return db.One(ctx, s.db, "subscriber "+id, "SELECT doc FROM sim_subscriber WHERE account = $1 AND id = $2",
		db.Doc[Subscriber], acct, id)
}

// folded is a name without regard to case. A control character, which no filter has, is
// a space.
func folded(name string) string {
	return strings.Map(func(r rune) rune { return max(r, ' ') }, strings.ToLower(name))
}

// Put saves a new subscriber. One that is there, because a job runs again, is
// replaced.
func (s *Subscribers) Put(ctx context.Context, acct relay.AccountID, subscriber Subscriber) error {
	const insert = `
		INSERT INTO sim_subscriber (account, id, forename, surname, doc)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account, id) DO NOTHING`
	const replace = `
		UPDATE sim_subscriber
		SET forename = $3,
		    surname = $4,
		    doc = $5
		WHERE account = $1
		  AND id = $2`
	label := "subscriber " + subscriber.ID
	values := []any{acct, subscriber.ID, folded(subscriber.Forename), folded(subscriber.Surname), db.JSON(subscriber)}
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		inserted, err := tx.Exec(ctx, label, insert, values...)
		if err != nil {
			return err
		}
		if inserted == 0 {
			return tx.Run(ctx, label, replace, values...)
		}
		return addToCount(ctx, tx, acct, subscriberTable, 1)
	})
}

// List returns a page of an account's subscribers.
func (s *Subscribers) List(ctx context.Context, acct relay.AccountID, q Query) ([]Subscriber, int, error) {
	q.Filters = slices.Clone(q.Filters)
	for i := range q.Filters {
		q.Filters[i].Value = folded(q.Filters[i].Value)
	}
	l := list{table: subscriberTable, account: acct, columns: SubscriberColumns()}
	return readPage(ctx, s.db, l, q, "doc", db.Doc[Subscriber])
}
