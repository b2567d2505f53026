package credit_test

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestStore(t *testing.T) {
	dbtest.Each(t, func(database *db.DB) *db.DB { return database }, map[string]func(*testing.T, *db.DB){
		"a change is made once, and never below zero":            changesAreMade,
		"of many at the same time as many pay as there is":       neverBelowZero,
		"an account opens once":                                  opensOnce,
		"an amount out of bounds is refused":                     amountsAreBounded,
		"changes of a transaction are made together or not":      changesGoTogether,
		"a transaction that is repeated charges once":            transactionsRepeat,
		"the newest entries are kept, and those of the last day": newestAreKept,
	})
}

func wantBalance(t *testing.T, s *credit.Store, acct relay.AccountID, want int64) {
	t.Helper()
	if got, err := s.Balance(t.Context(), acct); err != nil || got != want {
		t.Errorf("account %d has %d, want %d, %v", acct, got, want, err)
	}
	if got, err := s.Balances(t.Context(), []relay.AccountID{acct, 404}); err != nil || got[acct] != want || len(got) > 1 {
		t.Errorf("of several: %v, want %d for %d, %v", got, want, acct, err)
	}
}

func changesAreMade(t *testing.T, db *db.DB) {
	s, ctx := credit.NewStore(db), t.Context()
	wantBalance(t, s, 1, 0)
	relaytest.NoError(t, s.Open(ctx, 1, 3, dbtest.At(0)))
	charge := credit.Change{ID: "c1", Account: 1, Credits: -2, Reason: credit.Lookup, Reference: "447700900123", At: dbtest.At(1)}
	for range 2 { // the second is the first
		e, err := s.Apply(ctx, charge)
		want := credit.Entry{Sequence: 2, ID: "c1", At: dbtest.At(1), Credits: -2, Balance: 1, Reason: credit.Lookup, Reference: "447700900123"}
		relaytest.NoError(t, err)
		relaytest.Equal(t, "e", e, want)
	}
	charge.ID = "c2"
	_, err := s.Apply(ctx, charge)
	dbtest.WantKind(t, err, relay.KindNoCredit)
	wantBalance(t, s, 1, 1)
	wantBalance(t, s, 2, 0)
	relaytest.NoError(t, s.Set(ctx, 1, 100, dbtest.At(2)))
	wantBalance(t, s, 1, 100)
	entriesAreListed(t, s)
}

func entriesAreListed(t *testing.T, s *credit.Store) {
	t.Helper()
	for _, tc := range []struct {
		before uint64
		limit  int
		want   []int64
	}{{0, 10, []int64{99, -2, 3}}, {0, 2, []int64{99, -2}}, {2, 10, []int64{3}}, {1, 10, nil}, {900, 1, []int64{99}}, {1 << 63, 1, []int64{99}}, {0, -1, nil}} {
		list, err := s.Entries(t.Context(), 1, tc.before, tc.limit)
		var got []int64
		for _, e := range list {
			got = append(got, e.Credits)
		}
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("before %d, %d of them: %v, %v", tc.before, tc.limit, got, err)
		}
	}
	if list, err := s.Entries(t.Context(), 9, 0, 10); err != nil || list != nil {
		t.Errorf("of an account without credit: %v, %v", list, err)
	}
}

func opensOnce(t *testing.T, db *db.DB) {
	s, ctx := credit.NewStore(db), t.Context()
	// A charge that was refused opens nothing.
	_, err := s.Apply(ctx, credit.Change{ID: "early", Account: 1, Credits: -1, At: dbtest.At(0)})
	dbtest.WantKind(t, err, relay.KindNoCredit)
	for _, first := range []int64{0, 50} { // the second changes nothing
		relaytest.NoError(t, s.Open(ctx, 1, first, dbtest.At(0)))
	}
	wantBalance(t, s, 1, 0)
	relaytest.NoError(t, s.Set(ctx, 2, 7, dbtest.At(0)), s.Open(ctx, 2, 50, dbtest.At(0)))
	wantBalance(t, s, 2, 7)
}

func amountsAreBounded(t *testing.T, db *db.DB) {
	s, ctx := credit.NewStore(db), t.Context()
	for _, credits := range []int64{1<<50 + 1, -1<<50 - 1} {
		_, err := s.Apply(ctx, credit.Change{ID: "much", Account: 1, Credits: credits, At: dbtest.At(1)})
		dbtest.WantKind(t, err, relay.KindInvalid)
		dbtest.WantKind(t, s.Set(ctx, 1, credits, dbtest.At(1)), relay.KindInvalid)
		dbtest.WantKind(t, s.Open(ctx, 1, credits, dbtest.At(1)), relay.KindInvalid)
	}
	relaytest.NoError(t, s.Set(ctx, 1, 1<<50, dbtest.At(1)), s.Set(ctx, 1, 0, dbtest.At(1)))
	wantBalance(t, s, 1, 0)
}

func neverBelowZero(t *testing.T, db *db.DB) {
	relaytest.NoError(t, credit.NewStore(db).Open(t.Context(), 1, 50, dbtest.At(0)))
	spend(t, []*credit.Store{credit.NewStore(db)}, 200, 50)
}

// Two gateways on one database spend one balance.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.Two(t, credit.NewStore)
	one, two := gateways[0], gateways[1]
	for range 2 { // also while there are no rows
		var opening sync.WaitGroup
		for _, s := range []*credit.Store{one, two} {
			opening.Go(func() {
				if err := s.Open(t.Context(), 1, 300, dbtest.At(0)); err != nil {
					t.Error(err)
				}
			})
		}
		opening.Wait()
	}
	wantBalance(t, one, 1, 300)
	spend(t, []*credit.Store{one, two}, 400, 300)
}

// spend spends single credits in 40 goroutines, each id at every store, and
// expects that as many were paid as there were, and the entries to add up.
func spend(t *testing.T, stores []*credit.Store, changes, has int64) {
	t.Helper()
	var next atomic.Int64
	var paid sync.Map // id → sequence
	var running sync.WaitGroup
	for range 40 / len(stores) {
		for _, s := range stores {
			running.Go(func() {
				for i := next.Add(1); i <= changes*int64(len(stores)); i = next.Add(1) {
					id := fmt.Sprint(i % changes)
					e, err := s.Apply(t.Context(), credit.Change{ID: id, Account: 1, Credits: -1, At: dbtest.At(1)})
					if relay.KindOf(err) == relay.KindNoCredit {
						continue
					}
					was, repeated := paid.LoadOrStore(id, e.Sequence)
					if err != nil || repeated && was != e.Sequence {
						t.Errorf("%s: entry %d and %v, %v", id, e.Sequence, was, err)
					}
				}
			})
		}
	}
	running.Wait()
	n := int64(0)
	paid.Range(func(any, any) bool { n++; return true })
	if n != has {
		t.Errorf("%d of %d credits were spent", n, has)
	}
	wantBalance(t, stores[0], 1, 0)
	addUp(t, stores[0], int(has)+1)
}

// addUp expects so many entries, each with the balance of the one before it and
// its own credits.
func addUp(t *testing.T, s *credit.Store, count int) {
	t.Helper()
	list, err := s.Entries(t.Context(), 1, 0, count+10)
	if err != nil || len(list) != count {
		t.Errorf("%d entries, want %d, %v", len(list), count, err)
	}
	for i, e := range list {
		var before credit.Entry
		if i+1 < len(list) {
			before = list[i+1]
		}
		if e.Sequence != before.Sequence+1 || e.Balance != before.Balance+e.Credits || e.Balance < 0 {
			t.Errorf("%+v after %+v", e, before)
		}
	}
}
