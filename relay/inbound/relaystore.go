package inbound

import (
	"context"
	"errors"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// relaysVersion is counted up by every change to any relay. Its row is locked
// first: changes to relays run one after another, so that the check of a number
// holds until the commit.
const relaysVersion = "relays"

func readRelay(r *Relay) []any { return db.SealedDoc(r, "relay") }

const selectRelays = "SELECT account, doc, kind, id, number FROM relay"

// listedRelay returns where the columns of selectRelays are read to.
func listedRelay(r *Relay) []any {
	return []any{&r.Account, db.SealedOr(&r.Unopened, db.JSON(r), "relay", &r.Account), &r.Kind, &r.ID, &r.Number}
}

const getRelay = `
SELECT account, doc FROM relay WHERE account = $1 AND kind = $2 AND id = $3`

// Put saves a relay. It returns relay.KindConflict, with the field number or
// prefix in the message, if another relay has the number or prefix.
func (s *Store) Put(ctx context.Context, r Relay) error {
	return s.Declare(ctx, r, func(Relay) Relay { return r })
}

// Declare saves a relay as Put does, or, of one that exists, what merge returns for it.
// No other change of the relay comes between.
func (s *Store) Declare(ctx context.Context, r Relay, merge func(stored Relay) Relay) error {
	return s.db.Write(ctx, r.String(), func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Bump(ctx, relaysVersion); err != nil {
			return err
		}
		others, err := db.Value[int](ctx, tx, r.String(), `
SELECT count(*) FROM relay WHERE kind = $1 AND number = $2 AND NOT (account = $3 AND id = $4)`, r.Kind, r.Number, r.Account, r.ID)
		if err != nil {
			return err
		}
		if others > 0 {
			field := map[Kind]string{Geographic: "prefix", VirtualNumber: "number"}[r.Kind]
			return relay.Errorf(relay.KindConflict, "%s: the %s %s is taken", r, field, r.Number)
		}
		stored, err := db.One(ctx, tx, r.String(), getRelay, readRelay, r.Account, r.Kind, r.ID)
		saved := r
		if err == nil {
			saved = merge(stored)
		} else if !db.IsNotFound(err) {
			return err
		}
		return tx.Run(ctx, r.String(), db.Upsert("relay", "account, kind, id", "number, doc"), r.Account, r.Kind, r.ID, r.Number, db.Sealed(db.JSON(saved), "relay", r.Account))
	})
}

// Delete forgets a relay; relay.KindNotFound if there is none.
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, k Kind, id string) error {
	noun := nounOf(k, id)
	return s.db.RunAll(ctx, noun, db.Bump(relaysVersion), db.Do(`
DELETE FROM relay WHERE account = $1 AND kind = $2 AND id = $3`, acct, k, id).Or(db.NotFound(noun)))
}

// Get loads a relay; relay.KindNotFound if the account has none of that kind
// and id.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, k Kind, id string) (Relay, error) {
	return db.One(ctx, s.db, nounOf(k, id), getRelay, readRelay, acct, k, id)
}

// List returns an account's relays of a kind by number or prefix.
func (s *Store) List(ctx context.Context, acct relay.AccountID, k Kind) ([]Relay, error) {
	return db.List(ctx, s.db, "relays", selectRelays+" WHERE account = $1 AND kind = $2 ORDER BY number, id", listedRelay, acct, k)
}

// Scan returns relays of one or all accounts after one, by account, kind and id.
func (s *Store) Scan(ctx context.Context, acct relay.AccountID, after Ref, limit int) ([]Relay, error) {
	var w db.Where
	w.AndSet("account = ?", acct)
	w.And("(account, kind, id) > (?, ?, ?)", after.Account, after.Kind, after.ID)
	return db.Page(ctx, s.db, "relays", selectRelays, &w, "account, kind, id", limit, listedRelay)
}

// Change saves what change makes of a relay; its number stays. An error of change
// is returned as it is.
func (s *Store) Change(ctx context.Context, acct relay.AccountID, k Kind, id string, change func(*Relay) error) (Relay, error) {
	noun := nounOf(k, id)
	r, err := db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (r Relay, err error) {
		if _, err := db.Values[int64](ctx, tx, noun, `
SELECT n FROM version WHERE name = $1 {for update}`, relaysVersion); err != nil {
			return r, err
		}
		was, err := db.One(ctx, tx, noun, getRelay, db.SealedText("relay"), acct, k, id)
		if err != nil {
			return r, err
		}
		r, is, err := db.Edit(noun, was, func(r *Relay) error {
			number := r.Number
			if err := change(r); err != nil {
				return refusal{err}
			}
			r.Account, r.Kind, r.ID, r.Number = acct, k, id, number
			return nil
		})
		if err != nil || is == was {
			return r, err
		}
		return r, tx.RunAll(ctx, noun, db.Do(`
UPDATE relay SET doc = $1 WHERE account = $2 AND kind = $3 AND id = $4`, db.Sealed(is, "relay", acct), acct, k, id), db.Bump(relaysVersion))
	})
	if refused, ok := errors.AsType[refusal](err); ok {
		err = refused.error
	}
	return r, err
}

// refusal is an error of the caller's own on its way through a transaction.
type refusal struct{ error }

// Version counts the changes to all relays.
func (s *Store) Version(ctx context.Context) (int64, error) {
	return db.Version(ctx, s.db, relaysVersion)
}

// place is where a relay may stand: a number or prefix of a kind of relay.
type place struct {
	kind   Kind
	number string
}

// places lists where the relays of a number may stand.
func places(number string) []place {
	out := []place{{VirtualNumber, number}}
	for n := 1; n <= len(number); n++ {
		out = append(out, place{Geographic, number[:n]})
	}
	return out
}

// Candidates finds, for each number, the virtual number that it is and the
// relays of all its prefixes, in one round trip for all.
func (s *Store) Candidates(ctx context.Context, numbers []string) ([][]Relay, error) {
	b, asked := db.NewBatch("kind, number"), make(map[place]bool)
	for _, number := range numbers {
		for _, at := range places(number) {
			if !asked[at] {
				asked[at] = true
				b.Add(at.kind, at.number)
			}
		}
	}
	found, err := db.List(ctx, s.db, "relays", `
SELECT relay.account, relay.doc, relay.kind, relay.id, relay.number
FROM batch JOIN relay ON relay.kind = batch.kind AND relay.number = batch.number`, listedRelay, b)
	relays := db.By(found, func(r Relay) place { return place{r.Kind, r.Number} })
	out := make([][]Relay, len(numbers))
	for i, number := range numbers {
		for _, at := range places(number) {
			if found, ok := relays[at]; ok {
				out[i] = append(out[i], found)
			}
		}
	}
	return out, err
}

func nounOf(k Kind, id string) string { return Relay{Kind: k, ID: id}.String() }
