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
		"a change is applied once, and never below zero":        changesAreMade,
		"concurrent charges do not exceed the balance":          neverBelowZero,
		"an account is opened once":                             opensOnce,
		"amounts out of bounds are refused":                     amountsAreBounded,
		"changes of a transaction are atomic":                   changesAreAtomic,
		"a repeated transaction charges once":                   transactionsRepeat,
		"the newest entries and those of the last day are kept": newestAreKept,
	})
}

func wantBalance(t *testing.T, s *credit.Store, acct relay.AccountID, want int64) {
	t.Helper()
	if got, err := s.Balance(t.Context(), acct); err != nil || got != want {
		t.Errorf("balance of account %d = %d, error %v; want %d", acct, got, err, want)
	}
	if got, err := s.Balances(t.Context(), []relay.AccountID{acct, 404}); err != nil || got[acct] != want || len(got) > 1 {
		t.Errorf("balances = %v, error %v; want %d of account %d only", got, err, want, acct)
	}
}

func changesAreMade(t *testing.T, db *db.DB) {
	s, ctx := credit.NewStore(db), t.Context()
	wantBalance(t, s, 1, 0)
	relaytest.NoError(t, s.Open(ctx, 1, 3, dbtest.TimeAt(0)))
	charge := credit.Change{ID: "c1", Account: 1, Credits: -2, Reason: credit.Lookup, Reference: "447700900123", At: dbtest.TimeAt(1)}
	for range 2 { // the second call returns the first entry
		e, err := s.Apply(ctx, charge)
		want := credit.Entry{Sequence: 2, ID: "c1", At: dbtest.TimeAt(1), Credits: -2, Balance: 1, Reason: credit.Lookup, Reference: "447700900123"}
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the entry", e, want)
	}
	charge.ID = "c2"
	_, err := s.Apply(ctx, charge)
	dbtest.WantKind(t, err, relay.KindNoCredit)
	wantBalance(t, s, 1, 1)
	wantBalance(t, s, 2, 0)
	relaytest.NoError(t, s.Set(ctx, 1, 100, dbtest.TimeAt(2)))
	wantBalance(t, s, 1, 100)
	entriesAreListed(t, s)
}

func entriesAreListed(t *testing.T, s *credit.Store) {
	t.Helper()
	for _, tc := range []struct {
		beforeSeq uint64
		limit     int
		want      []int64
	}{{0, 10, []int64{99, -2, 3}}, {0, 2, []int64{99, -2}}, {2, 10, []int64{3}}, {1, 10, nil}, {900, 1, []int64{99}}, {1 << 63, 1, []int64{99}}, {0, -1, nil}} {
		list, err := s.Entries(t.Context(), 1, tc.beforeSeq, tc.limit)
		var got []int64
		for _, e := range list {
			got = append(got, e.Credits)
		}
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("entries before %d with limit %d = %v, error %v; want %v", tc.beforeSeq, tc.limit, got, err, tc.want)
		}
	}
	if list, err := s.Entries(t.Context(), 9, 0, 10); err != nil || list != nil {
		t.Errorf("entries of an account without credit = %v, error %v; want none", list, err)
	}
}

func opensOnce(t *testing.T, db *db.DB) {
	s, ctx := credit.NewStore(db), t.Context()
	// A refused charge does not open the account.
	_, err := s.Apply(ctx, credit.Change{ID: "early", Account: 1, Credits: -1, At: dbtest.TimeAt(0)})
	dbtest.WantKind(t, err, relay.KindNoCredit)
	for _, credits := range []int64{0, 50} { // the second call changes nothing
		relaytest.NoError(t, s.Open(ctx, 1, credits, dbtest.TimeAt(0)))
	}
	wantBalance(t, s, 1, 0)
	relaytest.NoError(t, s.Set(ctx, 2, 7, dbtest.TimeAt(0)), s.Open(ctx, 2, 50, dbtest.TimeAt(0)))
	wantBalance(t, s, 2, 7)
}

func amountsAreBounded(t *testing.T, db *db.DB) {
	s, ctx := credit.NewStore(db), t.Context()
	for _, credits := range []int64{1<<50 + 1, -1<<50 - 1} {
		_, err := s.Apply(ctx, credit.Change{ID: "much", Account: 1, Credits: credits, At: dbtest.TimeAt(1)})
		dbtest.WantKind(t, err, relay.KindInvalid)
		dbtest.WantKind(t, s.Set(ctx, 1, credits, dbtest.TimeAt(1)), relay.KindInvalid)
		dbtest.WantKind(t, s.Open(ctx, 1, credits, dbtest.TimeAt(1)), relay.KindInvalid)
	}
	relaytest.NoError(t, s.Set(ctx, 1, 1<<50, dbtest.TimeAt(1)), s.Set(ctx, 1, 0, dbtest.TimeAt(1)))
	wantBalance(t, s, 1, 0)
}

func neverBelowZero(t *testing.T, db *db.DB) {
	relaytest.NoError(t, credit.NewStore(db).Open(t.Context(), 1, 50, dbtest.TimeAt(0)))
	spend(t, []*credit.Store{credit.NewStore(db)}, 200, 50)
}

// TestTwoGateways opens and spends one balance at two gateways that share a database.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.TwoGateways(t, credit.NewStore)
	for range 2 { // the first round starts without rows
		var wg sync.WaitGroup
		for _, s := range gateways {
			wg.Go(func() {
				if err := s.Open(t.Context(), 1, 300, dbtest.TimeAt(0)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	wantBalance(t, gateways[0], 1, 300)
	spend(t, gateways[:], 400, 300)
}

// spend spends single credits in 40 goroutines, each id at every store. It checks that as many
// charges succeed as there are credits, and that the entries add up.
func spend(t *testing.T, stores []*credit.Store, changes, credits int64) {
	t.Helper()
	var counter atomic.Int64
	var paid sync.Map // id → sequence
	var wg sync.WaitGroup
	for range 40 / len(stores) {
		for _, s := range stores {
			wg.Go(func() {
				for i := counter.Add(1); i <= changes*int64(len(stores)); i = counter.Add(1) {
					id := fmt.Sprint(i % changes)
					e, err := s.Apply(t.Context(), credit.Change{ID: id, Account: 1, Credits: -1, At: dbtest.TimeAt(1)})
					if relay.KindOf(err) == relay.KindNoCredit {
						continue
					}
					sequence, repeated := paid.LoadOrStore(id, e.Sequence)
					if err != nil || repeated && sequence != e.Sequence {
						t.Errorf("charge %s: entries %d and %v, error %v; want the same entry", id, e.Sequence, sequence, err)
					}
				}
			})
		}
	}
	wg.Wait()
	n := int64(0)
	paid.Range(func(any, any) bool { n++; return true })
	if n != credits {
		t.Errorf("spent %d credits, want %d", n, credits)
	}
	wantBalance(t, stores[0], 1, 0)
	checkEntries(t, stores[0], int(credits)+1)
}

// checkEntries checks the number of entries and that each balance is the previous balance plus
// the credits of the entry.
func checkEntries(t *testing.T, s *credit.Store, count int) {
	t.Helper()
	list, err := s.Entries(t.Context(), 1, 0, count+10)
	if err != nil || len(list) != count {
		t.Errorf("got %d entries, error %v; want %d", len(list), err, count)
	}
	for i, e := range list {
		var previous credit.Entry
		if i+1 < len(list) {
			previous = list[i+1]
		}
		if e.Sequence != previous.Sequence+1 || e.Balance != previous.Balance+e.Credits || e.Balance < 0 {
			t.Errorf("entry %+v does not continue entry %+v", e, previous)
		}
	}
}
