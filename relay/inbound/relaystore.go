package inbound

import (
	"context"
	"errors"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// relaysVersion is the name of a version that every change of a relay increments. A change locks
// its row first, so that changes run one after another and the check of a number holds until the
// commit.
const relaysVersion = "relays"

func relayFields(r *Relay) []any { return db.SealedDoc(r, "relay") }

const selectRelays = "SELECT account, doc, kind, id, number FROM relay"

func listedFields(r *Relay) []any {
	return []any{&r.Account, db.SealedOr(&r.Undecryptable, db.JSON(r), "relay", &r.Account), &r.Kind, &r.ID, &r.Number}
}

const selectRelay = `
		SELECT account, doc
		FROM relay
		WHERE account = $1 AND kind = $2 AND id = $3`

func labelOf(k Kind, id string) string { return Relay{Kind: k, ID: id}.String() }

// Put saves a relay. It returns relay.KindConflict if another relay has the number or prefix.
func (s *Store) Put(ctx context.Context, r Relay) error {
	return s.Declare(ctx, r, func(Relay) Relay { return r })
}

// Create saves a new relay. It returns relay.KindConflict if a relay of any account has the number
// or prefix. It also does so if the new number or prefix begins with a prefix of another account, or
// if a number or prefix of another account begins with the new prefix: messages would change their
// account.
func (s *Store) Create(ctx context.Context, r Relay) error {
	const (
		countOverlaps = `
			SELECT COUNT(*)
			FROM relay
			WHERE kind = $1 AND number = $2
			   OR account <> $3 AND kind = 'geo' AND substr($2, 1, length(number)) = number
			   OR account <> $3 AND $4 = 'geo' AND substr(number, 1, length($2)) = $2`
		insert = `
			INSERT INTO relay (account, kind, id, number, doc)
			VALUES ($1, $2, $3, $4, $5)`
	)
	label := r.String()
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Bump(ctx, relaysVersion); err != nil {
			return err
		}
		overlaps, err := db.Value[int](ctx, tx, label, countOverlaps, r.Kind, r.Number, r.Account, r.Kind)
		if err != nil {
			return err
		}
		if overlaps > 0 {
			return relay.Errorf(relay.KindConflict, "%s: the %s %s is taken", r, NumberField(r.Kind), r.Number)
		}
		return tx.Run(ctx, label, insert, r.Account, r.Kind, r.ID, r.Number, db.Sealed(db.JSON(r), "relay", r.Account))
	})
}

// Declare saves a relay as Put does. If the relay exists, it saves the result of merge instead,
// in the transaction that has read the stored relay.
func (s *Store) Declare(ctx context.Context, r Relay, merge func(stored Relay) Relay) error {
	const countOthers = `
		SELECT COUNT(*)
		FROM relay
		WHERE kind = $1 AND number = $2
		  AND NOT (account = $3 AND id = $4)`
	const upsert = `
		INSERT INTO relay (account, kind, id, number, doc)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account, kind, id) DO UPDATE SET number = excluded.number, doc = excluded.doc`
	label := r.String()
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Bump(ctx, relaysVersion); err != nil {
			return err
		}
		conflicts, err := db.Value[int](ctx, tx, label, countOthers, r.Kind, r.Number, r.Account, r.ID)
		if err != nil {
			return err
		}
		if conflicts > 0 {
			return relay.Errorf(relay.KindConflict, "%s: the %s %s is taken", r, NumberField(r.Kind), r.Number)
		}
		saved := r
		stored, err := db.One(ctx, tx, label, selectRelay, relayFields, r.Account, r.Kind, r.ID)
		if err == nil {
			saved = merge(stored)
		} else if !db.IsNotFound(err) {
			return err
		}
		return tx.Run(ctx, label, upsert, r.Account, r.Kind, r.ID, r.Number, db.Sealed(db.JSON(saved), "relay", r.Account))
	})
}

// Delete deletes a relay. It returns relay.KindNotFound if the relay does not exist.
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, k Kind, id string) error {
	label := labelOf(k, id)
	return s.db.RunAll(ctx, label,
		db.Bump(relaysVersion),
		db.Do("DELETE FROM relay WHERE account = $1 AND kind = $2 AND id = $3", acct, k, id).Or(db.NotFound(label)))
}

// Get returns a relay. It returns relay.KindNotFound if the account has none with the kind and id.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, k Kind, id string) (Relay, error) {
	return db.One(ctx, s.db, labelOf(k, id), selectRelay, relayFields, acct, k, id)
}

// List returns an account's relays of a kind by number or prefix.
func (s *Store) List(ctx context.Context, acct relay.AccountID, k Kind) ([]Relay, error) {
	return db.List(ctx, s.db, "relays", selectRelays+" WHERE account = $1 AND kind = $2 ORDER BY number, id", listedFields, acct, k)
}

// Scan returns at most limit relays of an account, 0 for all accounts, sorted by account, kind and
// id, that follow cursor.
func (s *Store) Scan(ctx context.Context, acct relay.AccountID, cursor Ref, limit int) ([]Relay, error) {
	var w db.Where
	w.AndSet("account = ?", acct)
	w.And("(account, kind, id) > (?, ?, ?)", cursor.Account, cursor.Kind, cursor.ID)
	return db.Page(ctx, s.db, "relays", selectRelays, &w, "account, kind, id", limit, listedFields)
}

// Change applies change to a relay and saves the result. The number of the relay does not change.
// Change may call the function several times, and returns its errors unwrapped.
func (s *Store) Change(ctx context.Context, acct relay.AccountID, k Kind, id string, change func(*Relay) error) (Relay, error) {
	const lock = "SELECT n FROM version WHERE name = $1 {for update}"
	const update = "UPDATE relay SET doc = $1 WHERE account = $2 AND kind = $3 AND id = $4"
	label := labelOf(k, id)
	r, err := db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (r Relay, err error) {
		if _, err := db.Values[int64](ctx, tx, label, lock, relaysVersion); err != nil {
			return r, err
		}
		oldDoc, err := db.One(ctx, tx, label, selectRelay, db.SealedText("relay"), acct, k, id)
		if err != nil {
			return r, err
		}
		r, newDoc, err := db.Edit(label, oldDoc, func(r *Relay) error {
			number := r.Number
			if err := change(r); err != nil {
				return refusal{err}
			}
			r.Account, r.Kind, r.ID, r.Number = acct, k, id, number
			return nil
		})
		if err != nil || newDoc == oldDoc {
			return r, err
		}
		return r, tx.RunAll(ctx, label, db.Do(update, db.Sealed(newDoc, "relay", acct), acct, k, id), db.Bump(relaysVersion))
	})
	if refused, ok := errors.AsType[refusal](err); ok {
		err = refused.error
	}
	return r, err
}

// refusal is an error of a caller's function, which a transaction would wrap.
type refusal struct{ error }

// Version returns a number that changes with every change of any relay.
func (s *Store) Version(ctx context.Context) (int64, error) {
	return db.Version(ctx, s.db, relaysVersion)
}

// Candidates returns for each number the relays of all accounts that match it: the virtual number
// and the geographic relays with a prefix of the number.
func (s *Store) Candidates(ctx context.Context, numbers []string) ([][]Relay, error) {
	const query = `
		SELECT relay.account, relay.doc, relay.kind, relay.id, relay.number
		FROM batch
		JOIN relay ON relay.kind = batch.kind AND relay.number = batch.number`
	type key struct {
		kind   Kind
		number string
	}
	keysOf := func(number string) []key {
		keys := []key{{VirtualNumber, number}}
		for n := 1; n <= len(number); n++ {
			keys = append(keys, key{Geographic, number[:n]})
		}
		return keys
	}
	rows, requested := db.NewBatch("kind, number"), make(map[key]bool)
	for _, number := range numbers {
		for _, k := range keysOf(number) {
			if !requested[k] {
				requested[k] = true
				rows.Add(k.kind, k.number)
			}
		}
	}
	relays, err := db.List(ctx, s.db, "relays", query, listedFields, rows)
	byKey := db.IndexBy(relays, func(r Relay) key { return key{r.Kind, r.Number} })
	candidates := make([][]Relay, len(numbers))
	for i, number := range numbers {
		for _, k := range keysOf(number) {
			if r, ok := byKey[k]; ok {
				candidates[i] = append(candidates[i], r)
			}
		}
	}
	return candidates, err
}
