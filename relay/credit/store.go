package credit

import (
	"context"
	"math"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores the credit of accounts.
type Store struct{ db *db.DB }

// NewStore returns the store of credit.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Balance returns the balance of an account; 0 if the account never had credit.
func (s *Store) Balance(ctx context.Context, acct relay.AccountID) (int64, error) {
	return db.OrZero(db.Value[int64](ctx, s.db, label(acct), "SELECT balance FROM credit WHERE account = $1", acct))
}

// Granted returns the credit that the inventory and admins have given an account: its balance without
// charges and refunds since the inventory last set it.
func (s *Store) Granted(ctx context.Context, acct relay.AccountID) (int64, error) {
	return db.OrZero(db.Value[int64](ctx, s.db, label(acct), "SELECT granted FROM credit WHERE account = $1", acct))
}

// Balances returns the balances of accounts. It omits accounts that never had credit.
func (s *Store) Balances(ctx context.Context, accts []relay.AccountID) (map[relay.AccountID]int64, error) {
	const statement = `
		SELECT credit.account, credit.balance
		FROM batch
		JOIN credit ON credit.account = batch.account`
	return db.Map[relay.AccountID, int64](ctx, s.db, "credit", statement, db.Column("account", accts))
}

// Apply applies a change in a separate transaction, see the function Apply.
func (s *Store) Apply(ctx context.Context, c Change) (Entry, error) {
	return db.Transact(ctx, s.db, label(c.Account), func(ctx context.Context, tx *db.Tx) (Entry, error) {
		entries, err := Apply(ctx, tx, []Change{c})
		if err != nil {
			return Entry{}, err
		}
		return entries[0], nil
	})
}

// Open sets the initial balance of an account. It does not change an account that has an entry.
func (s *Store) Open(ctx context.Context, acct relay.AccountID, credits int64, now time.Time) error {
	return s.db.Write(ctx, label(acct), func(ctx context.Context, tx *db.Tx) error {
		return Open(ctx, tx, acct, credits, now)
	})
}

// Open is Store.Open in the transaction of the caller.
func Open(ctx context.Context, tx *db.Tx, acct relay.AccountID, credits int64, now time.Time) error {
	return setBalance(ctx, tx, Change{ID: string(Opened), Account: acct, Credits: credits, Reason: Opened, At: now})
}

// Set sets the balance of an account.
func (s *Store) Set(ctx context.Context, acct relay.AccountID, credits int64, now time.Time) error {
	change := Change{ID: relay.NewID(now), Account: acct, Credits: credits, Reason: Reset, At: now}
	return s.db.Write(ctx, label(acct), func(ctx context.Context, tx *db.Tx) error {
		return setBalance(ctx, tx, change)
	})
}

// setBalance applies the change that results in a balance of c.Credits. It does not open an account
// that has an entry.
func setBalance(ctx context.Context, tx *db.Tx, c Change) error {
	if c.Credits < 0 || c.Credits > MaxAmount {
		return errAmount()
	}
	b, err := lock(ctx, tx, c.Account)
	if err != nil || c.Reason == Opened && b.sequence > 0 {
		return err
	}
	c.Credits -= b.credits
	_, err = b.apply(ctx, tx, []Change{c})
	return err
}

// Entries lists up to limit changes of an account with sequences below beforeSeq (0: all), newest
// first.
func (s *Store) Entries(ctx context.Context, acct relay.AccountID, beforeSeq uint64, limit int) ([]Entry, error) {
	const statement = `
		SELECT sequence, id, at, credits, balance, reason, reference
		FROM credit_entry
		WHERE account = $1
		  AND sequence < $2
		ORDER BY sequence DESC
		LIMIT $3`
	if beforeSeq == 0 || beforeSeq > math.MaxInt64 {
		beforeSeq = math.MaxInt64
	}
	return db.List(ctx, s.db, label(acct), statement, entryFields, acct, int64(beforeSeq), max(limit, 0))
}

// entryFields returns pointers to the fields of e in the order of the columns: sequence,
// id, at, credits, balance, reason, reference.
func entryFields(e *Entry) []any {
	return []any{&e.Sequence, &e.ID, db.Time(&e.At), &e.Credits, &e.Balance, &e.Reason, &e.Reference}
}

func label(acct relay.AccountID) string { return "credit of account " + acct.String() }

// Reason is the reason for a change of credit.
type Reason string

// The reasons.
const (
	Opened   Reason = "opened"   // with the account
	Reset    Reason = "reset"    // by an inventory that was applied with reset=credit
	Adjusted Reason = "adjusted" // by an admin, who gives the reference
	Lookup   Reason = "lookup"   // an answered network lookup
	Sent     Reason = "sent"     // the parts of an order
	Refund   Reason = "refund"   // a part that was deleted or that no carrier has accepted
)

// Change is a requested change of an account's credit.
type Change struct {
	// ID is unique within the account.
	ID      string
	Account relay.AccountID
	Credits int64 // the added amount; negative for a charge
	Reason  Reason
	// Reference names the paid object: a number, a message's id.
	Reference string
	At        time.Time
}

// Entry is the record of a change.
type Entry struct {
	// Sequence counts an account's changes, from 1.
	Sequence  uint64    `json:"sequence"`
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Credits   int64     `json:"credits"` // added; negative for a charge
	Balance   int64     `json:"balance"` // after the change
	Reason    Reason    `json:"reason"`
	Reference string    `json:"reference"`
}
