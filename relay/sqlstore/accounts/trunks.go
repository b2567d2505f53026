package accounts

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Trunks keeps the SIP trunks of accounts.
type Trunks struct{ db *sqlstore.DB }

// NewTrunks returns the store of trunks.
func NewTrunks(db *sqlstore.DB) *Trunks { return &Trunks{db: db} }

// Trunks returns an account's trunks, in the order of the inventory; nil if it
// has none.
func (s *Trunks) Trunks(ctx context.Context, acct account.ID) ([]sip.Trunk, error) {
	list, err := sqlstore.One(ctx, s.db, "trunks of account "+acct.String(), "SELECT doc FROM trunk WHERE account = $1", sqlstore.ScanDoc[[]sip.Trunk], int64(acct))
	if sqlstore.IsNotFound(err) {
		return nil, nil
	}
	return list, err
}

const upsertTrunks = `
INSERT INTO trunk (account, doc) VALUES ($1, $2)
ON CONFLICT (account) DO UPDATE SET doc = excluded.doc`

// PutTrunks replaces an account's trunks.
func (s *Trunks) PutTrunks(ctx context.Context, acct account.ID, list []sip.Trunk) error {
	noun := "trunks of account " + acct.String()
	if len(list) == 0 {
		_, err := s.db.Exec(ctx, noun, "DELETE FROM trunk WHERE account = $1", int64(acct))
		return err
	}
	doc, err := sqlstore.Encode(list)
	if err != nil {
		return fmt.Errorf("%s: encode: %w", noun, err)
	}
	_, err = s.db.Exec(ctx, noun, upsertTrunks, int64(acct), doc)
	return err
}
