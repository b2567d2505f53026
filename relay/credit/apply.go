package credit

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

const (
	// MaxAmount bounds the amount of one change.
	MaxAmount = 1 << 50
	// maxEntries is the number of entries of an account that are kept for audits, in
	// addition to entries that are younger than minAge.
	maxEntries = 100_000
	minAge     = 24 * time.Hour
	// trimInterval is the number of changes of an account after which old entries are
	// deleted.
	trimInterval = 1000
)

func errAmount() error { return relay.Invalid("credit", "The amount is out of range.") }

// Apply applies changes of one account, in order, all or none, in the transaction of the caller. It
// locks the account's balance until the transaction ends, and should therefore be the last step
// of the transaction. The number of statements does not depend on the number of changes.
//
// For the id of an existing entry, Apply changes nothing and returns the entry, so that a repeated
// transaction charges once. Apply returns relay.KindNoCredit, and changes nothing, if the
// balance would be below zero after any of the changes.
func Apply(ctx context.Context, tx *db.Tx, changes []Change) ([]Entry, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	acct := changes[0].Account
	for _, c := range changes {
		if c.Account != acct {
			return nil, relay.Errorf(relay.KindUnexpected, "credit: changes of accounts %s and %s in one batch", acct, c.Account)
		}
		if c.Credits > MaxAmount || c.Credits < -MaxAmount {
			return nil, errAmount()
		}
	}
	b, err := lock(ctx, tx, acct)
	if err != nil {
		return nil, err
	}
	return b.apply(ctx, tx, changes)
}

// balance is an account's row of credit, locked.
type balance struct {
	account  relay.AccountID
	credits  int64
	sequence int64 // of the newest entry
	granted  int64 // see Store.Granted
}

// lock locks the balance of an account. It inserts a balance of 0 if the account does not have one.
func lock(ctx context.Context, tx *db.Tx, acct relay.AccountID) (balance, error) {
	const selectBalance = `
		SELECT account, balance, last, granted
		FROM credit
		WHERE account = $1 {for update}`
	const insertBalance = `
		INSERT INTO credit (account, balance, last)
		VALUES ($1, 0, 0)
		ON CONFLICT (account) DO NOTHING`
	fields := func(b *balance) []any { return []any{&b.account, &b.credits, &b.sequence, &b.granted} }
	b, err := db.One(ctx, tx, label(acct), selectBalance, fields, acct)
	if !db.IsNotFound(err) {
		return b, err
	}
	if err := tx.Run(ctx, label(acct), insertBalance, acct); err != nil {
		return b, err
	}
	return db.One(ctx, tx, label(acct), selectBalance, fields, acct)
}

// apply applies changes to a locked balance.
func (b balance) apply(ctx context.Context, tx *db.Tx, changes []Change) ([]Entry, error) {
	const selectApplied = `
		SELECT batch.n, e.sequence, e.id, e.at, e.credits, e.balance, e.reason, e.reference
		FROM batch
		JOIN credit_entry e ON e.account = batch.account AND e.id = batch.id`
	const insertEntries = `
		INSERT INTO credit_entry (account, sequence, id, at, credits, balance, reason, reference)
		SELECT $1, sequence, id, at, credits, balance, reason, reference
		FROM batch`
	const updateBalance = `
		UPDATE credit
		SET balance = $1, last = $2, granted = $3
		WHERE account = $4`

	// 1. Find the entries of changes that were applied before.
	ids := db.BatchOf("account, id", changes, func(c *Change) []any { return []any{b.account, c.ID} })
	entries, err := db.Numbered(ctx, tx, label(b.account), selectApplied, len(changes), entryFields, ids)
	if err != nil {
		return nil, err
	}

	// 2. Create the entries of new changes.
	var added []Entry
	oldSequence := b.sequence
	indexes := make(map[string]int, len(changes)) // by id
	for i, c := range changes {
		if k, repeated := indexes[c.ID]; repeated {
			entries[i] = entries[k]
			continue
		}
		indexes[c.ID] = i
		if entries[i].Sequence > 0 {
			continue
		}
		b.credits += c.Credits
		b.sequence++
		if b.credits < 0 {
			return nil, relay.Errorf(relay.KindNoCredit, "credit: account %s has less than %d", b.account, -c.Credits)
		}
		switch c.Reason {
		case Opened, Reset: // the amount leads to the granted balance
			b.granted = b.credits
		case Adjusted:
			b.granted += c.Credits
		}
		entries[i] = Entry{
			Sequence: uint64(b.sequence), ID: c.ID, At: db.FromMillis(db.Millis(c.At)),
			Credits: c.Credits, Balance: b.credits, Reason: c.Reason, Reference: c.Reference,
		}
		added = append(added, entries[i])
	}
	if len(added) == 0 {
		return entries, nil
	}

	// 3. Save the new entries and the balance.
	rows := db.BatchOf("sequence, id, at, credits, balance, reason, reference", added, entryFields)
	err = tx.RunAll(ctx, label(b.account),
		db.Do(insertEntries, b.account, rows),
		db.Do(updateBalance, b.credits, b.sequence, b.granted, b.account))
	if err != nil {
		return nil, err
	}
	return entries, b.trim(ctx, tx, oldSequence)
}

// trim deletes old entries after every trimInterval changes: up to four times as many as were added
// since the last time, so that it catches up after a busy day without a long transaction.
func (b balance) trim(ctx context.Context, tx *db.Tx, oldSequence int64) error {
	const statement = `
		DELETE FROM credit_entry
		WHERE account = $1
		  AND at < $2
		  AND sequence <= (
		    SELECT MAX(sequence)
		    FROM (
		      SELECT sequence
		      FROM credit_entry
		      WHERE account = $1
		        AND sequence <= $3
		      ORDER BY sequence
		      LIMIT $4
		    ) AS oldest
		  )`
	if b.sequence <= maxEntries || oldSequence/trimInterval == b.sequence/trimInterval {
		return nil
	}
	limit := 4 * (trimInterval + b.sequence - oldSequence)
	return tx.Run(ctx, label(b.account), statement, b.account, tx.Now().Add(-minAge), b.sequence-maxEntries, limit)
}
