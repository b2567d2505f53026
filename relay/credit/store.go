package credit

import (
	"context"
	"math"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store keeps the credit of accounts.
type Store struct{ db *db.DB }

// NewStore returns the store of credit.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Balance returns the credits an account has; 0 for one that never had any.
func (s *Store) Balance(ctx context.Context, acct relay.AccountID) (int64, error) {
	return db.OrZero(db.Value[int64](ctx, s.db, noun(acct), "SELECT balance FROM credit WHERE account = $1", acct))
}

// Balances returns the credits of accounts, without those that never had any.
func (s *Store) Balances(ctx context.Context, accts []relay.AccountID) (map[relay.AccountID]int64, error) {
	return db.Map[relay.AccountID, int64](ctx, s.db, "credit", "SELECT account, balance FROM credit WHERE account IN (SELECT account FROM batch)",
		db.Column("account", accts))
}

// Apply makes a change in a transaction of its own.
func (s *Store) Apply(ctx context.Context, c Change) (Entry, error) {
	return db.Transact(ctx, s.db, noun(c.Account), func(ctx context.Context, tx *db.Tx) (Entry, error) {
		all, err := Apply(ctx, tx, []Change{c})
		if err != nil {
			return Entry{}, err
		}
		return all[0], nil
	})
}

// Open gives an account its first credit; one that has an entry is left alone.
func (s *Store) Open(ctx context.Context, acct relay.AccountID, credits int64, at time.Time) error {
	return s.setTo(ctx, Change{
		ID: string(Opened), Account: acct, Credits: credits, Reason: Opened, At: at,
	}, func(is balance) bool { return is.last == 0 })
}

// Set makes the balance credits, whatever it was.
func (s *Store) Set(ctx context.Context, acct relay.AccountID, credits int64, at time.Time) error {
	return s.setTo(ctx, Change{
		ID: relay.NewID(at), Account: acct, Credits: credits, Reason: Reset, At: at,
	}, func(balance) bool { return true })
}

// setTo makes the change that leads to a balance of c.Credits, if applies accepts
// the balance as it is.
func (s *Store) setTo(ctx context.Context, c Change, applies func(balance) bool) error {
	if c.Credits < 0 || c.Credits > maxCredit {
		return invalidAmount()
	}
	return s.db.Write(ctx, noun(c.Account), func(ctx context.Context, tx *db.Tx) error {
		is, err := lock(ctx, tx, c.Account)
		if err != nil || !applies(is) {
			return err
		}
		change := c
		change.Credits -= is.credits
		_, err = apply(ctx, tx, is, []Change{change})
		return err
	})
}

// Entries lists changes, newest first, with sequences below before (0: all).
func (s *Store) Entries(ctx context.Context, acct relay.AccountID, before uint64, limit int) ([]Entry, error) {
	if before == 0 || before > math.MaxInt64 {
		before = math.MaxInt64
	}
	return db.List(ctx, s.db, noun(acct), `
SELECT sequence, id, at, credits, balance, reason, reference
FROM credit_entry
WHERE account = $1 AND sequence < $2
ORDER BY sequence DESC
LIMIT $3`, fields, acct, int64(before), max(limit, 0))
}
