package sip

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Trunks stores the SIP trunks of accounts. It is safe for concurrent use.
type Trunks struct{ db *db.DB }

// NewTrunks returns the store of trunks.
func NewTrunks(database *db.DB) *Trunks { return &Trunks{db: database} }

// Trunks returns the trunks of an account in the order of the inventory, or nil if there are none.
func (t *Trunks) Trunks(ctx context.Context, acct relay.AccountID) ([]Trunk, error) {
	const query = `
		SELECT doc
		FROM trunk
		WHERE account = $1`
	return db.OrZero(db.One(ctx, t.db, "trunks of account "+acct.String(), query, db.Doc[[]Trunk], acct))
}

// PutTrunks replaces the trunks of an account.
func (t *Trunks) PutTrunks(ctx context.Context, acct relay.AccountID, trunks []Trunk) error {
	const deleteTrunks = `
		DELETE FROM trunk
		WHERE account = $1`
	label := "trunks of account " + acct.String()
	if len(trunks) == 0 {
		return t.db.Run(ctx, label, deleteTrunks, acct)
	}
	return t.db.Run(ctx, label, db.Upsert("trunk", "account", "doc"), acct, db.JSON(trunks))
}
