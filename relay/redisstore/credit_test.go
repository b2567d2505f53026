package redisstore

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
)

var _ credit.Store = (*Credit)(nil)

func TestCredit(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		s, ctx := open(t).Credit(), t.Context()
		balance := func(acct account.ID, want int64) {
			t.Helper()
			if got, err := s.Balance(ctx, acct); err != nil || got != want {
				t.Fatalf("account %d has %d, want %d, %v", acct, got, want, err)
			}
		}
		balance(1, 0)
		for _, first := range []int64{3, 50} { // the second changes nothing
			if err := s.Open(ctx, 1, first, at(0)); err != nil {
				t.Fatal(err)
			}
		}
		balance(1, 3)
		charge := credit.Change{ID: "c1", Account: 1, Credits: -2, Reason: credit.Lookup, Reference: "447700900123", At: at(1)}
		for range 2 { // the second is the first
			e, err := s.Apply(ctx, charge)
			want := credit.Entry{Sequence: 2, ID: "c1", At: at(1), Credits: -2, Balance: 1, Reason: credit.Lookup, Reference: "447700900123"}
			if err != nil || e != want {
				t.Fatalf("%+v, %v", e, err)
			}
		}
		charge.ID = "c2"
		if _, err := s.Apply(ctx, charge); relay.KindOf(err) != relay.KindNoCredit {
			t.Errorf("below zero: %v", err)
		}
		balance(1, 1)
		balance(2, 0)
		if err := s.Set(ctx, 1, 100, at(2)); err != nil {
			t.Fatal(err)
		}
		balance(1, 100)
		testCreditEntries(t, s)
	})
}

func testCreditEntries(t *testing.T, s *Credit) {
	t.Helper()
	for _, tc := range []struct {
		before uint64
		limit  int
		want   []int64
	}{{0, 10, []int64{99, -2, 3}}, {0, 2, []int64{99, -2}}, {2, 10, []int64{3}}, {1, 10, nil}, {900, 1, []int64{99}}} {
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

func TestCreditIsNeverBelowZero(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		s, ctx := open(t).Credit(), t.Context()
		if err := s.Open(ctx, 1, 50, at(0)); err != nil {
			t.Fatal(err)
		}
		var paid atomic.Int64
		var running sync.WaitGroup
		for i := range 200 {
			running.Go(func() {
				_, err := s.Apply(ctx, credit.Change{ID: fmt.Sprint(i), Account: 1, Credits: -1, At: at(1)})
				switch {
				case err == nil:
					paid.Add(1)
				case relay.KindOf(err) != relay.KindNoCredit:
					t.Error(err)
				}
			})
		}
		running.Wait()
		left, err := s.Balance(ctx, 1)
		if err != nil || left != 0 || paid.Load() != 50 {
			t.Errorf("%d of 50 credits were spent, %d are left, %v", paid.Load(), left, err)
		}
	})
}

func TestCreditKeepsTheNewestEntries(t *testing.T) {
	s, ctx := openEmbedded(t).Credit(), t.Context()
	for i := range 3 {
		if _, err := s.Apply(ctx, credit.Change{ID: fmt.Sprint(i), Account: 1, Credits: 1, At: at(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.rdb.HDel(ctx, keyCreditEntries(1), "1").Err(); err != nil { // as the script does after 100,000
		t.Fatal(err)
	}
	if list, err := s.Entries(ctx, 1, 0, 10); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := s.Apply(ctx, credit.Change{ID: "much", Account: 1, Credits: 1 << 60, At: at(1)}); relay.KindOf(err) != relay.KindInvalid {
		t.Error(err)
	}
}
