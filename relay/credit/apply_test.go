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

// apply applies changes in one transaction.
func apply(t *testing.T, database *db.DB, changes ...credit.Change) (entries []credit.Entry, err error) {
	t.Helper()
	err = database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
		entries, err = credit.Apply(ctx, tx, changes)
		return err
	})
	return entries, err
}

func change(id string, credits int64) credit.Change {
	return credit.Change{ID: id, Account: 1, Credits: credits, Reason: credit.Sent, Reference: "to " + id, At: dbtest.TimeAt(1)}
}

func entry(sequence uint64, id string, credits, balance int64) credit.Entry {
	return credit.Entry{Sequence: sequence, ID: id, At: dbtest.TimeAt(1), Credits: credits, Balance: balance, Reason: credit.Sent, Reference: "to " + id}
}

func changesAreAtomic(t *testing.T, db *db.DB) {
	s := credit.NewStore(db)
	for name, tc := range map[string]struct {
		changes []credit.Change
		kind    relay.Kind
	}{
		"negative balance at the end":    {[]credit.Change{change("a", 5), change("b", -6)}, relay.KindNoCredit},
		"negative balance in the middle": {[]credit.Change{change("a", 5), change("b", -6), change("c", 9)}, relay.KindNoCredit},
		"amount out of bounds":           {[]credit.Change{change("a", 5), change("b", 1<<60)}, relay.KindInvalid},
		"two accounts":                   {[]credit.Change{change("a", 5), {ID: "b", Account: 2}}, relay.KindUnexpected},
	} {
		_, err := apply(t, db, tc.changes...)
		if err == nil || relay.KindOf(err) != tc.kind {
			t.Errorf("%s: error %v, want kind %s", name, err, tc.kind)
		}
	}
	relaytest.Equal(t, "the number of entries", len(relaytest.Must(s.Entries(t.Context(), 1, 0, 10))(t)), 0)
	entries, err := apply(t, db, change("a", 5), change("b", -2), change("a", 5), change(`c'"{}`, -3))
	want := []credit.Entry{entry(1, "a", 5, 5), entry(2, "b", -2, 3), entry(1, "a", 5, 5), entry(3, `c'"{}`, -3, 0)}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the entries", entries, want)
	if entries, err := apply(t, db); entries != nil || err != nil {
		t.Errorf("no changes: entries %+v, error %v; want neither", entries, err)
	}
	checkEntries(t, s, 3)
}

func transactionsRepeat(t *testing.T, database *db.DB) {
	s := credit.NewStore(database)
	first, err := apply(t, database, change("open", 10), change("x", -4), change("y", -4))
	relaytest.NoError(t, err)
	// Repeated changes cost nothing, so they are not refused for lack of credit.
	repeated, err := apply(t, database, change("open", 10), change("x", -4), change("y", -4))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the entries of the repeated changes", repeated, first)
	partly, err := apply(t, database, change("y", -4), change("z", -2))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the entries of changes that are partly repeated", partly, []credit.Entry{first[2], entry(4, "z", -2, 0)})
	checkEntries(t, s, 4)
	// Changes are rolled back with the transaction of the caller.
	errRollback := errors.New("rollback")
	err = database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
		_, err := credit.Apply(ctx, tx, []credit.Change{change("rolled back", 5)})
		return errors.Join(err, errRollback)
	})
	if !errors.Is(err, errRollback) {
		t.Errorf("got error %v, want %v", err, errRollback)
	}
	checkEntries(t, s, 4)
}

func newestAreKept(t *testing.T, database *db.DB) {
	id := 0
	add := func(n int, createdAt time.Time) {
		t.Helper()
		changes := make([]credit.Change, n)
		for i := range changes {
			changes[i] = credit.Change{ID: fmt.Sprint(id + i), Account: 1, Credits: 1, At: createdAt}
		}
		id += n
		_, err := apply(t, database, changes...)
		relaytest.NoError(t, err)
	}
	// skipTo sets the last sequence number, as if there had been as many changes.
	skipTo := func(last int64) {
		t.Helper()
		err := database.Run(t.Context(), "test", "UPDATE credit SET last = $1", last)
		relaytest.NoError(t, err)
	}
	wantEntries := func(want, oldest int64) {
		t.Helper()
		got, err := db.Values[int64](t.Context(), database, "test", "SELECT sequence FROM credit_entry WHERE account = 1 ORDER BY sequence")
		if err != nil || int64(len(got)) != want || got[0] != oldest {
			t.Fatalf("got %d entries, error %v; want %d from %d", len(got), err, want, oldest)
		}
	}
	now := database.Now()
	add(1500, now.Add(-25*time.Hour))
	wantEntries(1500, 1)
	skipTo(100_499)
	add(500, now) // entries are not deleted at each change
	wantEntries(2000, 1)
	add(1, now)
	wantEntries(1001, 1001)
	skipTo(201_999) // entries of the last day are kept although 100,000 are newer
	add(1, now)
	wantEntries(502, 100_500)
	id = 1500 // repeats the ids of the entries of the last day
	add(501, now)
	wantEntries(502, 100_500)
	wantBalance(t, credit.NewStore(database), 1, 2002)
}
