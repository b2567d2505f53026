package credit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// apply makes changes in one transaction.
func apply(t *testing.T, database *db.DB, changes ...credit.Change) (all []credit.Entry, err error) {
	t.Helper()
	err = database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
		all, err = credit.Apply(ctx, tx, changes)
		return err
	})
	return all, err
}

func change(id string, credits int64) credit.Change {
	return credit.Change{ID: id, Account: 1, Credits: credits, Reason: credit.Sent, Reference: "to " + id, At: dbtest.At(1)}
}

func entry(sequence uint64, id string, credits, balance int64) credit.Entry {
	return credit.Entry{Sequence: sequence, ID: id, At: dbtest.At(1), Credits: credits, Balance: balance, Reason: credit.Sent, Reference: "to " + id}
}

func changesGoTogether(t *testing.T, db *db.DB) {
	s := credit.NewStore(db)
	for name, tc := range map[string]struct {
		changes []credit.Change
		kind    relay.Kind
	}{
		"less than nothing at the end":    {[]credit.Change{change("a", 5), change("b", -6)}, relay.KindNoCredit},
		"less than nothing in the middle": {[]credit.Change{change("a", 5), change("b", -6), change("c", 9)}, relay.KindNoCredit},
		"no such amount":                  {[]credit.Change{change("a", 5), change("b", 1<<60)}, relay.KindInvalid},
		"two accounts":                    {[]credit.Change{change("a", 5), {ID: "b", Account: 2}}, relay.KindUnexpected},
	} {
		_, err := apply(t, db, tc.changes...)
		if err == nil || relay.KindOf(err) != tc.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	relaytest.Equal(t, "the number of entries", len(relaytest.Must(s.Entries(t.Context(), 1, 0, 10))(t)), 0)
	all, err := apply(t, db, change("a", 5), change("b", -2), change("a", 5), change(`c'"{}`, -3))
	want := []credit.Entry{entry(1, "a", 5, 5), entry(2, "b", -2, 3), entry(1, "a", 5, 5), entry(3, `c'"{}`, -3, 0)}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "all", all, want)
	if none, err := apply(t, db); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
	addUp(t, s, 3)
}

func transactionsRepeat(t *testing.T, database *db.DB) {
	s := credit.NewStore(database)
	first, err := apply(t, database, change("open", 10), change("x", -4), change("y", -4))
	relaytest.NoError(t, err)
	// What is repeated costs nothing, so it is not refused for lack of credit.
	again, err := apply(t, database, change("open", 10), change("x", -4), change("y", -4))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of apply", again, first)
	partly, err := apply(t, database, change("y", -4), change("z", -2))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of apply", partly, []credit.Entry{first[2], entry(4, "z", -2, 0)})
	addUp(t, s, 4)
	// What the caller undoes is undone.
	no := errors.New("no")
	err = database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
		_, err := credit.Apply(ctx, tx, []credit.Change{change("undone", 5)})
		return errors.Join(err, no)
	})
	if !errors.Is(err, no) {
		t.Error(err)
	}
	addUp(t, s, 4)
}

func newestAreKept(t *testing.T, database *db.DB) {
	id := 0
	add := func(n int, at time.Time) {
		t.Helper()
		all := make([]credit.Change, n)
		for i := range all {
			all[i] = credit.Change{ID: fmt.Sprint(id + i), Account: 1, Credits: 1, At: at}
		}
		id += n
		_, err := apply(t, database, all...)
		relaytest.NoError(t, err)
	}
	// As if there had been so many changes.
	skip := func(last int64) {
		t.Helper()
		err := database.Run(t.Context(), "test", "UPDATE credit SET last = $1", last)
		relaytest.NoError(t, err)
	}
	kept := func(want, oldest int64) {
		t.Helper()
		got, err := db.Values[int64](t.Context(), database, "test", "SELECT sequence FROM credit_entry WHERE account = 1 ORDER BY sequence")
		if err != nil || int64(len(got)) != want || got[0] != oldest {
			t.Fatalf("%d entries are kept, want %d from %d, %v", len(got), want, oldest, err)
		}
	}
	now := database.Now()
	add(1500, now.Add(-25*time.Hour))
	kept(1500, 1)
	skip(100_499)
	add(500, now) // not at each change
	kept(2000, 1)
	add(1, now)
	kept(1001, 1001)
	skip(201_999) // those of today are kept although there are 100,000 newer ones
	add(1, now)
	kept(502, 100_500)
	id = 1500 // and known
	add(501, now)
	kept(502, 100_500)
	wantBalance(t, credit.NewStore(database), 1, 2002)
}
