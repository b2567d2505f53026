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

// timeAt returns the time s seconds after the start of the tests.
func timeAt(s float64) time.Time { return dbtest.TimeAt(s) }

// storeNow returns the time of the store.
func storeNow() time.Time { return timeAt(50) }

func TestStore(t *testing.T) {
	suite := func(t *testing.T, url func(t testing.TB) string) {
		for name, test := range map[string]func(*testing.T, *Store){
			"a job from its creation to its end": testLifecycle, "due jobs of each account": dueOfEachAccount,
			"a settled result is kept": settledIsKept, "lists": testLists, "expired jobs leave their lists": testExpiredJobs,
		} {
			t.Run(name, func(t *testing.T) {
				test(t, NewStore(dbtest.Open(t, db.Options{URL: url(t), Now: storeNow})))
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

func testLifecycle(t *testing.T, s *Store) {
	ctx := t.Context()
	created := Job{ID: "j1", Account: 1, Kind: "token.claim", Input: []byte(`{"a":"<é>"}`), CreatedAt: timeAt(0), Retention: time.Hour}
	otherJob := Job{ID: "j2", Account: 2, Kind: "token.claim", CreatedAt: timeAt(5)}
	for _, j := range []Job{created, created, otherJob} {
		relaytest.NoError(t, s.Create(ctx, j))
	}
	want := created
	want.State, want.Due, want.UpdatedAt = Queued, timeAt(0), timeAt(0)
	relaytest.Equal(t, "the stored job", relaytest.Must(s.Get(ctx, 1, "j1"))(t), want)
	if _, err := s.Get(ctx, 2, "j1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Get in another account: error %v, want kind not found", err)
	}
	relaytest.Equal(t, "the due jobs", relaytest.Must(s.Due(ctx, timeAt(1), 10))(t), []Ref{{Account: 1, ID: "j1"}})
	testLease(t, s, created)
	testEnd(t, s, created)
}

func testLease(t *testing.T, s *Store, created Job) {
	ctx, ref := t.Context(), Ref{Account: 1, ID: "j1"}
	got, leased, err := s.Lease(ctx, ref, timeAt(1), timeAt(11))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "whether the job was leased", leased, true)
	relaytest.Equal(t, "the state of the leased job", got.State, Processing)
	relaytest.Equal(t, "the tries of the leased job", got.Tries, 1)
	relaytest.Equal(t, "the end of the lease", got.Due, timeAt(11))
	relaytest.Equal(t, "the input of the leased job", string(got.Input), string(created.Input))
	got, leased, err = s.Lease(ctx, ref, timeAt(2), timeAt(12))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "whether the job was leased twice", leased, false)
	relaytest.Equal(t, "the state after the second call", got.State, Processing)
	got, leased, err = s.Lease(ctx, ref, timeAt(11), timeAt(21))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "whether the job was leased after the first lease", leased, true)
	relaytest.Equal(t, "the tries after the second lease", got.Tries, 2)
	if _, leased, err := s.Lease(ctx, Ref{Account: 1, ID: "none"}, timeAt(1), timeAt(2)); leased || relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Lease of an unknown job: leased %v, error %v; want kind not found", leased, err)
	}
}

func testEnd(t *testing.T, s *Store, created Job) {
	ctx, ref := t.Context(), Ref{Account: 1, ID: "j1"}
	relaytest.NoError(t, s.Finish(ctx, created, Outcome{Error: "down", RetryAt: timeAt(30)}, timeAt(20)))
	if got, err := s.Get(ctx, 1, "j1"); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "the state after a failed run", got.State, Processing)
		relaytest.Equal(t, "the error after a failed run", got.Error, "down")
		relaytest.Equal(t, "the due time after a failed run", got.Due, timeAt(30))
		relaytest.Equal(t, "the time of the last change after a failed run", got.UpdatedAt, timeAt(20))
	}
	for _, o := range []Outcome{{Result: []byte(`{"ok":true}`)}, {Error: "too late"}} { // the second changes nothing
		relaytest.NoError(t, s.Finish(ctx, created, o, timeAt(40)))
	}
	got := relaytest.Must(s.Get(ctx, 1, "j1"))(t)
	relaytest.Equal(t, "the state of the finished job", got.State, Completed)
	relaytest.Equal(t, "the error of the finished job", got.Error, "")
	relaytest.Equal(t, "the result of the finished job", string(got.Result), `{"ok":true}`)
	relaytest.Equal(t, "the due time of the finished job", got.Due, time.Time{})
	if _, leased, err := s.Lease(ctx, ref, timeAt(100), timeAt(110)); leased || err != nil {
		t.Errorf("Lease of a finished job: leased %v, error %v; want neither", leased, err)
	}
	if due, err := s.Due(ctx, timeAt(1000), 10); err != nil || len(due) != 1 || due[0].ID != "j2" {
		t.Errorf("due jobs = %v, error %v; want j2", due, err)
	}
}

func expiresAfterItsEnd(t *testing.T, url string) {
	var ms atomic.Int64
	now := func() time.Time { return timeAt(0).Add(time.Duration(ms.Load()) * time.Millisecond) }
	s, ctx := NewStore(dbtest.Open(t, db.Options{URL: url, Now: now})), t.Context()
	j := Job{ID: "j1", Account: 1, Kind: "k", CreatedAt: timeAt(0), Retention: time.Hour}
	for _, id := range []string{"kept", "unfinished"} {
		relaytest.NoError(t, s.Create(ctx, Job{ID: id, Account: 1, Kind: "k", CreatedAt: timeAt(0)}))
	}
	relaytest.NoError(t, s.Finish(ctx, Job{ID: "kept", Account: 1}, Outcome{}, timeAt(0)))
	relaytest.NoError(t, s.Create(ctx, j))
	relaytest.NoError(t, s.Finish(ctx, j, Outcome{Result: []byte("1")}, timeAt(0)))
	ms.Store(time.Hour.Milliseconds() - 1)
	relaytest.Equal(t, "the state before the expiry", relaytest.Must(s.Get(ctx, 1, "j1"))(t).State, Completed)
	ms.Add(1)
	if _, err := s.Get(ctx, 1, "j1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Get after the expiry: error %v, want kind not found", err)
	}
	relaytest.NoError(t, s.Create(ctx, j)) // the id of the expired job is free
	recreated := relaytest.Must(s.Get(ctx, 1, "j1"))(t)
	relaytest.Equal(t, "the state of the new job", recreated.State, Queued)
	relaytest.Equal(t, "the result of the new job", recreated.Result, nil)
	relaytest.NoError(t, s.Finish(ctx, j, Outcome{}, timeAt(0)))
	for range 2 {
		relaytest.NoError(t, s.Sweep(ctx, now()))
	}
	remaining, err := db.Values[string](ctx, s.db, "test", "SELECT id FROM job ORDER BY id")
	if err != nil || !slices.Equal(remaining, []string{"kept", "unfinished"}) {
		t.Errorf("jobs after the sweep = %v, error %v; want kept and unfinished", remaining, err)
	}
}

func dueOfEachAccount(t *testing.T, s *Store) {
	for i := range 5 {
		for acct := range relay.AccountID(3) {
			relaytest.NoError(t, s.Create(t.Context(), Job{ID: fmt.Sprint("j", i), Account: acct + 1, Kind: "k", CreatedAt: timeAt(float64(5 - i))}))
		}
	}
	due, err := s.Due(t.Context(), timeAt(4), 2)
	if err != nil || len(due) != 6 {
		t.Fatalf("due jobs = %v, error %v; want 6", due, err)
	}
	for acct := range relay.AccountID(3) {
		accountJobs := slices.DeleteFunc(slices.Clone(due), func(r Ref) bool { return r.Account != acct+1 })
		if len(accountJobs) != 2 || accountJobs[0].ID != "j4" || accountJobs[1].ID != "j3" {
			t.Errorf("due jobs of account %d = %v, want j4 and j3", acct+1, accountJobs)
		}
	}
}

// TestGatewaysShareJobs runs jobs at two gateways: each job is leased once.
func TestGatewaysShareJobs(t *testing.T) {
	gateways := dbtest.TwoGateways(t, NewStore)
	const jobCount = 50
	for range 2 { // both gateways create each job
		for i := range jobCount {
			relaytest.NoError(t, gateways[i%2].Create(t.Context(), Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "l", CreatedAt: timeAt(0)}))
		}
	}
	var leased [jobCount]atomic.Int32
	var wg sync.WaitGroup
	for _, s := range gateways {
		for range 3 {
			wg.Go(func() { runAll(t, s, leased[:]) })
		}
	}
	wg.Wait()
	for i := range leased {
		if n := leased[i].Load(); n != 1 {
			t.Errorf("j%d was leased %d times, want 1", i, n)
		}
	}
	jobs, total, err := gateways[0].List(t.Context(), 1, Filter{List: "l", State: Completed}, 0, 100)
	if err != nil || total != jobCount || jobs[0].Tries != 1 || jobs[jobCount-1].ID != fmt.Sprint("j", jobCount-1) {
		t.Errorf("completed jobs: %d of %d, error %v; want %d in order", len(jobs), total, err, jobCount)
	}
}

// runAll finishes every job that it can lease.
func runAll(t *testing.T, s *Store, leases []atomic.Int32) {
	for i := range leases {
		j, leased, err := s.Lease(t.Context(), Ref{Account: 1, ID: fmt.Sprint("j", i)}, timeAt(1), timeAt(60))
		if err != nil {
			t.Error(err)
		}
		if !leased {
			continue
		}
		leases[i].Add(1)
		for range 2 { // the caller repeats a call after a lost response
			if err := s.Finish(t.Context(), j, Outcome{}, timeAt(2)); err != nil {
				t.Error(err)
			}
		}
	}
}

func settledIsKept(t *testing.T, s *Store) {
	ctx, ref := t.Context(), Ref{Account: 1, ID: "j1"}
	relaytest.NoError(t, s.Create(ctx, Job{ID: "j1", Account: 1, Kind: "k", CreatedAt: timeAt(0)}))
	settle := func(ref Ref, text string) (earlier string) {
		relaytest.NoError(t, s.db.Write(ctx, "test", func(ctx context.Context, tx *db.Tx) error {
			settlement, err := LockSettlement(ctx, tx, ref)
			if earlier = string(settlement); earlier != "" || err != nil {
				return err
			}
			return Settle(ctx, tx, ref, []byte(text))
		}))
		return earlier
	}
	if got := settle(ref, `{"n":1}`); got != "" {
		t.Errorf("earlier result of the first Settle = %s, want none", got)
	}
	if got := settle(ref, `{"n":2}`); got != `{"n":1}` {
		t.Errorf("earlier result of the second Settle = %s, want that of the first", got)
	}
	settle(Ref{Account: 2, ID: "j1"}, `{"n":3}`) // account 2 has no job j1
	got := relaytest.Must(s.Get(ctx, 1, "j1"))(t)
	relaytest.Equal(t, "the settled result", string(got.Settlement), `{"n":1}`)
	relaytest.Equal(t, "the state of the settled job", got.State, Queued)
}
