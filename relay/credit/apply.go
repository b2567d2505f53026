package credit

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

const (
	// maxCredit bounds the amount of one change.
	maxCredit = 1 << 50
	// maxKept is how many entries of an account are kept for audits.
	maxKept = 100_000
	// minKnown is how long the id of a change is kept at least, however many changes
	// there are.
	minKnown = 24 * time.Hour
	// trimEvery is after how many changes of an account its old entries are
	// deleted.
	trimEvery = 1000
)

// Apply makes changes of one account, in their order, in the transaction of a
// caller: all or none. It locks the account's balance until the transaction ends,
// so it comes last in it, and takes the same number of statements for any number
// of changes.
//
// A change whose id was applied before is skipped; its entry is the one it had
// then, so a transaction that is repeated charges once. It returns
// relay.KindNoCredit, with nothing changed, if the balance would be below zero
// after any of the changes.
func Apply(ctx context.Context, tx *db.Tx, changes []Change) ([]Entry, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	acct := changes[0].Account
	for _, c := range changes {
		if c.Account != acct {
			return nil, relay.Errorf(relay.KindUnexpected, "credit: changes of accounts %s and %s in one batch", acct, c.Account)
		}
		if c.Credits > maxCredit || c.Credits < -maxCredit {
			return nil, invalidAmount()
		}
	}
	is, err := lock(ctx, tx, acct)
	if err != nil {
		return nil, err
	}
	return apply(ctx, tx, is, changes)
}

func noun(acct relay.AccountID) string { return "credit of account " + acct.String() }

func invalidAmount() error { return relay.Invalid("credit", "There is no such amount.") }

// balance is an account's row of credit, locked.
type balance struct {
	account relay.AccountID
	credits int64
	last    int64 // sequence of the newest entry
}

// lock locks the balance of an account, which is made if there is none.
func lock(ctx context.Context, tx *db.Tx, acct relay.AccountID) (balance, error) {
	is, err := lockExisting(ctx, tx, acct)
	if !db.IsNotFound(err) {
		return is, err
	}
	if err := tx.Run(ctx, noun(acct), `
INSERT INTO credit (account, balance, last) VALUES ($1, 0, 0)
ON CONFLICT (account) DO NOTHING`, acct); err != nil {
		return is, err
	}
	return lockExisting(ctx, tx, acct)
}

func lockExisting(ctx context.Context, tx *db.Tx, acct relay.AccountID) (balance, error) {
	return db.One(ctx, tx, noun(acct), "SELECT account, balance, last FROM credit WHERE account = $1 {for update}",
		func(b *balance) []any { return []any{&b.account, &b.credits, &b.last} }, acct)
}

// apply makes changes of a balance that is locked.
func apply(ctx context.Context, tx *db.Tx, is balance, changes []Change) ([]Entry, error) {
	entries, err := applied(ctx, tx, is.account, changes)
	if err != nil {
		return nil, err
	}
	next, added, err := is.apply(changes, entries)
	if err != nil || len(added) == 0 {
		return entries, err
	}
	rows := db.BatchOf("sequence, id, at, credits, balance, reason, reference", added, fields)
	err = tx.RunAll(ctx, noun(is.account), db.Do(`
INSERT INTO credit_entry (account, sequence, id, at, credits, balance, reason, reference)
SELECT $1, sequence, id, at, credits, balance, reason, reference FROM batch`, is.account, rows),
		db.Do("UPDATE credit SET balance = $1, last = $2 WHERE account = $3", next.credits, next.last, is.account))
	if err != nil {
		return nil, err
	}
	return entries, trim(ctx, tx, is, next)
}

// apply fills in the entries of the changes that have none yet. It returns the
// balance after them and those entries alone.
func (b balance) apply(changes []Change, entries []Entry) (next balance, added []Entry, err error) {
	first := make(map[string]int, len(changes)) // id → index
	for i, c := range changes {
		if before, repeated := first[c.ID]; repeated {
			entries[i] = entries[before]
			continue
		}
		first[c.ID] = i
		if entries[i].Sequence > 0 {
			continue
		}
		b.credits += c.Credits
		b.last++
		if b.credits < 0 {
			return b, nil, relay.Errorf(relay.KindNoCredit, "credit: account %s has less than %d", b.account, -c.Credits)
		}
		entries[i] = Entry{
			Sequence: uint64(b.last), ID: c.ID, At: db.Moment(db.Millis(c.At)),
			Credits: c.Credits, Balance: b.credits, Reason: c.Reason, Reference: c.Reference,
		}
		added = append(added, entries[i])
	}
	return b, added, nil
}

// applied returns the entries of the changes that were applied before, at the
// indexes of the changes, and empty ones for the others.
func applied(ctx context.Context, tx *db.Tx, acct relay.AccountID, changes []Change) ([]Entry, error) {
	ids := db.BatchOf("account, id", changes, func(c *Change) []any { return []any{acct, c.ID} })
	return db.Numbered(ctx, tx, noun(acct), `
SELECT batch.n, e.sequence, e.id, e.at, e.credits, e.balance, e.reason, e.reference
FROM batch JOIN credit_entry e ON e.account = batch.account AND e.id = batch.id`, len(changes), fields, ids)
}

// fields are the columns of an entry.
func fields(e *Entry) []any {
	return []any{&e.Sequence, &e.ID, db.Time(&e.At), &e.Credits, &e.Balance, &e.Reason, &e.Reference}
}

// trim deletes entries that are no longer kept, each trimEvery changes. It looks
// at more than were added and at no more than a few times that, so that it
// catches up with a busy day.
func trim(ctx context.Context, tx *db.Tx, was, is balance) error {
	if is.last <= maxKept || was.last/trimEvery == is.last/trimEvery {
		return nil
	}
	limit := 4 * (trimEvery + is.last - was.last)
	return tx.Run(ctx, noun(is.account), `
DELETE FROM credit_entry
WHERE account = $1 AND at < $2 AND sequence <= (
  SELECT MAX(sequence)
  FROM (SELECT sequence FROM credit_entry WHERE account = $1 AND sequence <= $3 ORDER BY sequence LIMIT $4) oldest)`, is.account, tx.Now().Add(-minKnown), is.last-maxKept, limit)
}
