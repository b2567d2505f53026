package sip

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Trunks keeps the SIP trunks of accounts.
type Trunks struct{ db *db.DB }

// NewTrunks returns the store of trunks.
func NewTrunks(database *db.DB) *Trunks { return &Trunks{db: database} }

// Trunks returns an account's trunks, in the order of the inventory; nil if it
// has none.
func (t *Trunks) Trunks(ctx context.Context, acct relay.AccountID) ([]Trunk, error) {
	return db.OrZero(db.One(ctx, t.db, "trunks of account "+acct.String(),
		"SELECT doc FROM trunk WHERE account = $1", db.Doc[[]Trunk], acct))
}

// PutTrunks replaces an account's trunks.
func (t *Trunks) PutTrunks(ctx context.Context, acct relay.AccountID, list []Trunk) error {
	noun := "trunks of account " + acct.String()
	if len(list) == 0 {
		return t.db.Run(ctx, noun, "DELETE FROM trunk WHERE account = $1", acct)
	}
	return t.db.Run(ctx, noun, db.Upsert("trunk", "account", "doc"), acct, db.JSON(list))
}
