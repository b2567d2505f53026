package job

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

var _ Getter = (*Store)(nil)

// at is a time of the tests, s seconds after their beginning.
func at(s float64) time.Time { return dbtest.At(s) }

func still() time.Time { return at(50) }

func TestStore(t *testing.T) {
	suite := func(t *testing.T, url func(t testing.TB) string) {
		for name, test := range map[string]func(*testing.T, *Store){
			"a job from its creation to its end": fromBeginToEnd, "due jobs of each account": dueOfEachAccount,
			"what is settled is kept": settledIsKept, "lists": lists, "expired jobs leave their lists": expiredLeave,
		} {
			t.Run(name, func(t *testing.T) {
				test(t, NewStore(dbtest.Open(t, db.Options{URL: url(t), Now: still})))
			})
		}
		t.Run("a job expires after its end", func(t *testing.T) { expiresAfterItsEnd(t, url(t)) })
	}
	t.Run("on SQLite", func(t *testing.T) {
		suite(t, func(testing.TB) string { return "" })
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		suite(t, dbtest.Shared(t).NewDatabase)
	})
}

func fromBeginToEnd(t *testing.T, s *Store) {
	ctx := t.Context()
	made := Job{ID: "j1", Account: 1, Kind: "token.claim", Input: []byte(`{"a":"<é>"}`), CreatedAt: at(0), Keep: time.Hour}
	other := Job{ID: "j2", Account: 2, Kind: "token.claim", CreatedAt: at(5)}
	for _, j := range []Job{made, made, other} {
		relaytest.NoError(t, s.Create(ctx, j))
	}
	want := made
	want.State, want.Due, want.UpdatedAt = Queued, at(0), at(0)
	relaytest.Equal(t, "result of Get", relaytest.Must(s.Get(ctx, 1, "j1"))(t), want)
	if _, err := s.Get(ctx, 2, "j1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's: %v", err)
	}
	relaytest.Equal(t, "result of Due", relaytest.Must(s.Due(ctx, at(1), 10))(t), []Ref{{Account: 1, ID: "j1"}})
	testLease(t, s, made)
	testEnd(t, s, made)
}

func testLease(t *testing.T, s *Store, made Job) {
	ctx, ref := t.Context(), Ref{Account: 1, ID: "j1"}
	got, taken, err := s.Lease(ctx, ref, at(1), at(11))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Lease, taken", taken, true)
	relaytest.Equal(t, "result of Lease, State", got.State, Processing)
	relaytest.Equal(t, "result of Lease, Tries", got.Tries, 1)
	relaytest.Equal(t, "result of Lease, Due", got.Due, at(11))
	relaytest.Equal(t, "result of Lease, got.Input", string(got.Input), string(made.Input))
	got, taken, err = s.Lease(ctx, ref, at(2), at(12))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "leased twice", taken, false)
	relaytest.Equal(t, "the state of the leased job", got.State, Processing)
	got, taken, err = s.Lease(ctx, ref, at(11), at(21))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "leased after the first lease", taken, true)
	relaytest.Equal(t, "the tries after the second lease", got.Tries, 2)
	if _, taken, err := s.Lease(ctx, Ref{Account: 1, ID: "none"}, at(1), at(2)); taken || relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("no such job: %v, %v", taken, err)
	}
}

func testEnd(t *testing.T, s *Store, made Job) {
	ctx, ref := t.Context(), Ref{Account: 1, ID: "j1"}
	relaytest.NoError(t, s.Finish(ctx, made, Outcome{Error: "down", RetryAt: at(30)}, at(20)))
	if got, err := s.Get(ctx, 1, "j1"); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "result of Get, State", got.State, Processing)
		relaytest.Equal(t, "result of Get, Error", got.Error, "down")
		relaytest.Equal(t, "result of Get, Due", got.Due, at(30))
		relaytest.Equal(t, "result of Get, UpdatedAt", got.UpdatedAt, at(20))
	}
	for _, o := range []Outcome{{Result: []byte(`{"ok":true}`)}, {Error: "too late"}} { // the second changes nothing
		relaytest.NoError(t, s.Finish(ctx, made, o, at(40)))
	}
	got := relaytest.Must(s.Get(ctx, 1, "j1"))(t)
	relaytest.Equal(t, "the state of the finished job", got.State, Completed)
	relaytest.Equal(t, "its error", got.Error, "")
	relaytest.Equal(t, "its result", string(got.Result), `{"ok":true}`)
	relaytest.Equal(t, "when it is due", got.Due, time.Time{})
	if _, taken, err := s.Lease(ctx, ref, at(100), at(110)); taken || err != nil {
		t.Errorf("leased after its end: %v, %v", taken, err)
	}
	if due, err := s.Due(ctx, at(1000), 10); err != nil || len(due) != 1 || due[0].ID != "j2" {
		t.Errorf("due %v, %v", due, err)
	}
}

func expiresAfterItsEnd(t *testing.T, url string) {
	var ms atomic.Int64
	now := func() time.Time { return at(0).Add(time.Duration(ms.Load()) * time.Millisecond) }
	s, ctx := NewStore(dbtest.Open(t, db.Options{URL: url, Now: now})), t.Context()
	j := Job{ID: "j1", Account: 1, Kind: "k", CreatedAt: at(0), Keep: time.Hour}
	for _, forever := range []string{"kept", "unfinished"} {
		relaytest.NoError(t, s.Create(ctx, Job{ID: forever, Account: 1, Kind: "k", CreatedAt: at(0)}))
	}
	relaytest.NoError(t, s.Finish(ctx, Job{ID: "kept", Account: 1}, Outcome{}, at(0)))
	relaytest.NoError(t, s.Create(ctx, j))
	relaytest.NoError(t, s.Finish(ctx, j, Outcome{Result: []byte("1")}, at(0)))
	ms.Store(time.Hour.Milliseconds() - 1)
	relaytest.Equal(t, "before the end of its keep", relaytest.Must(s.Get(ctx, 1, "j1"))(t).State, Completed)
	ms.Add(1)
	if _, err := s.Get(ctx, 1, "j1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("after it: %v", err)
	}
	relaytest.NoError(t, s.Create(ctx, j)) // its id is free again
	again := relaytest.Must(s.Get(ctx, 1, "j1"))(t)
	relaytest.Equal(t, "the state of the job made again", again.State, Queued)
	relaytest.Equal(t, "its result", again.Result, nil)
	relaytest.NoError(t, s.Finish(ctx, j, Outcome{}, at(0)))
	for range 2 {
		relaytest.NoError(t, s.Sweep(ctx, now()))
	}
	left, err := db.Values[string](ctx, s.db, "test", "SELECT id FROM job ORDER BY id")
	if err != nil || !slices.Equal(left, []string{"kept", "unfinished"}) {
		t.Errorf("left by the sweep: %v, %v", left, err)
	}
}

func dueOfEachAccount(t *testing.T, s *Store) {
	for i := range 5 {
		for acct := range relay.AccountID(3) {
			relaytest.NoError(t, s.Create(t.Context(), Job{ID: fmt.Sprint("j", i), Account: acct + 1, Kind: "k", CreatedAt: at(float64(5 - i))}))
		}
	}
	due, err := s.Due(t.Context(), at(4), 2)
	if err != nil || len(due) != 6 {
		t.Fatalf("%v, %v", due, err)
	}
	for acct := range relay.AccountID(3) {
		of := slices.DeleteFunc(slices.Clone(due), func(r Ref) bool { return r.Account != acct+1 })
		if len(of) != 2 || of[0].ID != "j4" || of[1].ID != "j3" {
			t.Errorf("account %d: %v", acct+1, of)
		}
	}
}

// Two gateways want the same jobs: each is run by one of them at a time.
func TestGatewaysShareJobs(t *testing.T) {
	gateways := dbtest.Two(t, NewStore)
	const many = 50
	for range 2 { // each says the same
		for i := range many {
			relaytest.NoError(t, gateways[i%2].Create(t.Context(), Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "l", CreatedAt: at(0)}))
		}
	}
	var leased [many]atomic.Int32
	var wg sync.WaitGroup
	for _, s := range gateways {
		for range 3 {
			wg.Go(func() { takeAll(t, s, leased[:]) })
		}
	}
	wg.Wait()
	for i := range leased {
		if n := leased[i].Load(); n != 1 {
			t.Errorf("j%d was leased %d times", i, n)
		}
	}
	found, total, err := gateways[0].List(t.Context(), 1, Filter{List: "l", State: Completed}, 0, 100)
	if err != nil || total != many || found[0].Tries != 1 || found[many-1].ID != fmt.Sprint("j", many-1) {
		t.Errorf("%d of %d, %v", len(found), total, err)
	}
}

// takeAll leases and ends every job that it gets.
func takeAll(t *testing.T, s *Store, leased []atomic.Int32) {
	for i := range leased {
		j, taken, err := s.Lease(t.Context(), Ref{Account: 1, ID: fmt.Sprint("j", i)}, at(1), at(60))
		if err != nil {
			t.Error(err)
		}
		if !taken {
			continue
		}
		leased[i].Add(1)
		for range 2 { // an answer was lost
			if err := s.Finish(t.Context(), j, Outcome{}, at(2)); err != nil {
				t.Error(err)
			}
		}
	}
}

func settledIsKept(t *testing.T, s *Store) {
	ctx, ref := t.Context(), Ref{Account: 1, ID: "j1"}
	relaytest.NoError(t, s.Create(ctx, Job{ID: "j1", Account: 1, Kind: "k", CreatedAt: at(0)}))
	settle := func(ref Ref, text string) (before string) {
		relaytest.NoError(t, s.db.Write(ctx, "test", func(ctx context.Context, tx *db.Tx) error {
			settled, err := Settled(ctx, tx, ref)
			if before = string(settled); before != "" || err != nil {
				return err
			}
			return Settle(ctx, tx, ref, []byte(text))
		}))
		return before
	}
	if got := settle(ref, `{"n":1}`); got != "" {
		t.Errorf("settled before: %s", got)
	}
	if got := settle(ref, `{"n":2}`); got != `{"n":1}` {
		t.Errorf("settled again: %s", got)
	}
	settle(Ref{Account: 2, ID: "j1"}, `{"n":3}`) // there is none
	got := relaytest.Must(s.Get(ctx, 1, "j1"))(t)
	relaytest.Equal(t, "what was settled", string(got.Settled), `{"n":1}`)
	relaytest.Equal(t, "the state of the settled job", got.State, Queued)
}
