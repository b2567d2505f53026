package outbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// gateways are the stores of two gateways on one PostgreSQL.
type gateways struct {
	rig
	stores [2]*Store
}

// onTwo runs a test on two gateways.
func onTwo(t *testing.T, server *dbtest.Postgres, name string, test func(g *gateways)) {
	t.Run(name, func(t *testing.T) {
		url := server.NewDatabase(t)
		g := &gateways{}
		for i := range g.stores {
			g.stores[i] = NewStore(dbtest.Open(t, db.Options{URL: url}))
		}
		g.rig = rig{T: t, Store: g.stores[0]}
		test(g)
	})
}

// both calls do n times on each gateway, all at the same time.
func (g *gateways) both(n int, do func(s *Store, gateway, i int) error) {
	g.Helper()
	var all sync.WaitGroup
	begin := make(chan struct{})
	for gateway, s := range g.stores {
		for i := range n {
			all.Go(func() {
				<-begin
				if err := do(s, gateway, i); err != nil {
					g.Error(err)
				}
			})
		}
	}
	close(begin)
	all.Wait()
}

func TestTwoGateways(t *testing.T) {
	server := dbtest.Shared(t)
	onTwo(t, server, "one of them takes a lease", oneLeases)
	onTwo(t, server, "each takes others from a line", eachTakesOthers)
	onTwo(t, server, "an ordered line has one order and one attempt", oneLine)
	onTwo(t, server, "the same deliveries are created once", createdOnce)
	onTwo(t, server, "the same outcomes count once", countedOnce)
	onTwo(t, server, "replays and sweeps keep the counts", countsStay)
	onTwo(t, server, "an attempt that ends while its delivery is replayed is recorded", finishedDuringReplay)
	onTwo(t, server, "outcomes are recorded after a deadlock", finishedAfterDeadlock)
}

func oneLeases(g *gateways) {
	ds := make([]Delivery, 20)
	for i := range ds {
		ds[i] = post(fmt.Sprint(i))
	}
	g.create(30, ds...)
	var mu sync.Mutex
	taken := make(map[string]int)
	refs := make([]Ref, len(ds))
	for i := range ds {
		refs[i] = refOf(&ds[i])
	}
	g.both(len(ds), func(s *Store, _, i int) error {
		d, ok, err := s.Lease(g.Context(), 1, ds[i].ID, at(40), at(100))
		also, errDue := s.LeaseDue(g.Context(), refs, at(40), at(100))
		mu.Lock()
		defer mu.Unlock()
		if ok {
			taken[d.ID]++
		}
		for _, d := range also {
			taken[d.ID]++
		}
		return errors.Join(err, errDue)
	})
	for _, d := range ds {
		if taken[d.ID] != 1 {
			g.Errorf("%s is leased %d times", d.ID, taken[d.ID])
		}
	}
}

func eachTakesOthers(g *gateways) {
	const n = 100
	ds, os := make([]Delivery, n), make([]Outcome, n)
	for i := range ds {
		ds[i] = to("e", fmt.Sprint(i), false)
		os[i] = parkedOutcome(ds[i], float64(i))
	}
	g.create(30, ds...)
	g.finished(os...)
	var mu sync.Mutex
	taken := make(map[string]int)
	g.both(5, func(s *Store, _, _ int) error {
		ds, err := s.Take(g.Context(), ParkedEndpoint{Account: 1, Endpoint: "e"}, 10, time.Time{}, at(500))
		mu.Lock()
		defer mu.Unlock()
		for _, d := range ds {
			taken[d.ID]++
		}
		return err
	})
	for id, times := range taken {
		if times != 1 {
			g.Errorf("%s is taken %d times", id, times)
		}
	}
	counts, err := g.CountParked(g.Context())
	if left := counts["e"]; err != nil || left+len(taken) != n {
		g.Errorf("%d taken, %d left, error %v", len(taken), left, err)
	}
}

// oneLine has both gateways create in an ordered line and attempt what is in turn:
// never two at a time, and all of them.
func oneLine(g *gateways) {
	const n = 20
	var underWay atomic.Int64
	attempt := func(s *Store, id string) error {
		for {
			if underWay.Add(1) > 1 {
				g.Errorf("%s is attempted while another one is", id)
			}
			d, err := s.Get(g.Context(), 1, id)
			underWay.Add(-1)
			if err != nil {
				return err
			}
			turns, err := s.Finish(g.Context(), []Outcome{outcome(d, 1, Delivered)})
			if err != nil || len(turns) == 0 {
				return err
			}
			id = turns[0].ID
		}
	}
	g.both(n, func(s *Store, gateway, i int) error {
		ds := []Delivery{to("e", fmt.Sprintf("%d-%d", gateway, i), true)}
		if _, err := s.Create(g.Context(), ds, at(30)); err != nil || ds[0].Waits != "" {
			return err
		}
		return attempt(s, ds[0].ID)
	})
	g.counts(0, 2*n, 0)
}

func createdOnce(g *gateways) {
	const n, batch = 10, 20
	var mu sync.Mutex
	added := 0
	g.both(n, func(s *Store, gateway, i int) error {
		ds := make([]Delivery, batch)
		for k := range ds {
			ds[k] = to("e", fmt.Sprintf("%d-%d", i, k), true)
		}
		if gateway == 1 {
			slices.Reverse(ds)
		}
		created, err := s.Create(g.Context(), ds, at(30))
		mu.Lock()
		defer mu.Unlock()
		added += len(created)
		return err
	})
	places, err := db.Values[int](g.Context(), g.db, "test", "SELECT place FROM delivery ORDER BY place")
	want := make([]int, n*batch)
	for i := range want {
		want[i] = i + 1
	}
	if err != nil || added != n*batch || !slices.Equal(places, want) {
		g.Errorf("%d added, places %v, error %v", added, places, err)
	}
	if due := g.due(1000, n*batch); len(due) != 1 {
		g.Errorf("%v are attempted at one time", due)
	}
}

func countedOnce(g *gateways) {
	ds, os := make([]Delivery, 50), []Outcome(nil)
	for i := range ds {
		ds[i] = post(fmt.Sprint(i))
		os = append(os, outcome(ds[i], 1, []State{Retrying, Delivered, Dead}[i%3]))
	}
	g.create(30, ds...)
	g.both(4, func(s *Store, gateway, i int) error {
		mine := slices.Clone(os)
		if (gateway+i)%2 == 1 {
			slices.Reverse(mine)
		}
		_, err := s.Finish(g.Context(), mine)
		return err
	})
	for _, d := range ds {
		if got := g.get(d.ID); got.Tries != 1 || len(got.Attempts) != 1 {
			g.Errorf("%s: %d tries, %d attempts", d.ID, got.Tries, len(got.Attempts))
		}
	}
	g.counts(17, 17, 16)
}

// counts compares the counts with what is there.
func (g *gateways) counts(retrying, delivered, dead int) {
	g.Helper()
	got, err := g.Counts(g.Context())
	want := map[State]int{Queued: 0, Simulated: 0, Retrying: retrying, Delivered: delivered, Dead: dead}
	if err != nil || !reflect.DeepEqual(got, want) {
		g.Errorf("counts %v, want %v, error %v", got, want, err)
	}
}

func countsStay(g *gateways) {
	var ids []string
	for i := range 30 {
		d := post(fmt.Sprint(i))
		g.create(30, d)
		g.finished(outcome(d, 1, Dead))
		ids = append(ids, d.ID)
	}
	var mu sync.Mutex
	changed := 0
	g.both(3, func(s *Store, _, _ int) error {
		done, err := s.Replay(g.Context(), refs(ids...), at(2), false)
		mu.Lock()
		defer mu.Unlock()
		changed += len(done)
		return err
	})
	if changed != len(ids) {
		g.Errorf("%d replayed, want each once", changed)
	}
	var os []Outcome
	for _, id := range ids {
		os = append(os, outcome(post(id), 3, Delivered))
	}
	g.finished(os...)
	if _, err := g.db.Exec(g.Context(), "test", "UPDATE delivery SET expires = 1, created = 1 WHERE id LIKE '1%'"); err != nil {
		g.Fatal(err)
	}
	g.both(3, func(s *Store, _, _ int) error { return s.Sweep(g.Context()) })
	g.counts(0, 19, 0)
}

// finishedDuring records outcomes at one gateway while a transaction of the other one,
// which do begins, keeps them waiting; end is its end.
func (g *gateways) finishedDuring(do, end func(s *Store, tx *db.Tx) error, os ...Outcome) {
	g.Helper()
	var finished sync.WaitGroup
	defer finished.Wait()
	var once sync.Once
	s := g.stores[1]
	g.must(s.db.Write(g.Context(), "test", func(_ context.Context, tx *db.Tx) error {
		if err := do(s, tx); err != nil {
			return err
		}
		once.Do(func() {
			finished.Go(func() { g.finished(os...) })
			g.untilOneWaits()
		})
		return end(s, tx)
	}))
}

// untilOneWaits waits until a statement waits for a lock.
func (g *gateways) untilOneWaits() {
	g.Helper()
	const waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	for {
		n, err := db.Value[int](g.Context(), g.stores[0].db, "test", waiting)
		g.must(err)
		if n > 0 {
			return
		}
	}
}

func finishedDuringReplay(g *gateways) {
	d := post("a")
	g.create(30, d)
	g.finished(outcome(d, 1, Delivered))
	g.finishedDuring(func(s *Store, tx *db.Tx) error {
		_, err := replay(g.Context(), tx, refs("a"), at(2), true)
		return err
	}, func(*Store, *db.Tx) error { return nil }, outcome(d, 3, Delivered))
	if got := g.get("a"); got.State != Delivered || len(got.Attempts) != 2 {
		g.Errorf("%s, %d attempts, want %s after 2", got.State, len(got.Attempts), Delivered)
	}
}

// finishedAfterDeadlock has outcomes lock a and wait for b, which a transaction has that
// then waits for a: PostgreSQL ends the one that waits longest, that of the outcomes.
func finishedAfterDeadlock(g *gateways) {
	a, b := post("a"), post("b")
	g.create(30, a, b)
	g.finished(outcome(b, 1, Delivered))
	lock := func(id string) func(s *Store, tx *db.Tx) error {
		return func(_ *Store, tx *db.Tx) error {
			_, err := db.List(g.Context(), tx, "test", "SELECT id, account FROM delivery WHERE account = 1 AND id = $1 FOR UPDATE", refFields, id)
			return err
		}
	}
	g.finishedDuring(lock("b"), lock("a"), outcome(a, 2, Delivered), outcome(b, 2, Delivered))
	for id, attempts := range map[string]int{"a": 1, "b": 2} {
		if got := g.get(id); got.State != Delivered || len(got.Attempts) != attempts {
			g.Errorf("%s: %s, %d attempts, want %s after %d", id, got.State, len(got.Attempts), Delivered, attempts)
		}
	}
}
