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

// gateways has the stores of two gateways that share a PostgreSQL database.
type gateways struct {
	rig
	stores [2]*Store
}

// onTwoGateways runs a test on two gateways.
func onTwoGateways(t *testing.T, server *dbtest.Postgres, name string, test func(g *gateways)) {
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

// onBoth calls do n times on each gateway, all concurrently.
func (g *gateways) onBoth(n int, do func(s *Store, gateway, i int) error) {
	g.Helper()
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for gateway, s := range g.stores {
		for i := range n {
			wg.Go(func() {
				<-begin
				if err := do(s, gateway, i); err != nil {
					g.Error(err)
				}
			})
		}
	}
	close(begin)
	wg.Wait()
}

func TestTwoGateways(t *testing.T) {
	server := dbtest.Shared(t)
	onTwoGateways(t, server, "each delivery is leased by one gateway", leasedOnce)
	onTwoGateways(t, server, "each parked delivery is taken by one gateway", takenOnce)
	onTwoGateways(t, server, "deliveries of an ordered endpoint are attempted one at a time", orderedOnce)
	onTwoGateways(t, server, "the same deliveries are created once", createdOnce)
	onTwoGateways(t, server, "the same outcomes count once", countedOnce)
	onTwoGateways(t, server, "replays and sweeps keep the counts", countsStay)
	onTwoGateways(t, server, "an attempt that ends while its delivery is replayed is recorded", finishedDuringReplay)
	onTwoGateways(t, server, "outcomes are recorded after a deadlock", finishedAfterDeadlock)
}

func leasedOnce(g *gateways) {
	ds := make([]Delivery, 20)
	for i := range ds {
		ds[i] = newDelivery(fmt.Sprint(i))
	}
	g.create(30, ds...)
	var mu sync.Mutex
	leaseCounts := make(map[string]int)
	deliveryRefs := make([]Ref, len(ds))
	for i := range ds {
		deliveryRefs[i] = refOf(&ds[i])
	}
	g.onBoth(len(ds), func(s *Store, _, i int) error {
		leased, ok, err := s.Lease(g.Context(), 1, ds[i].ID, timeAt(40), timeAt(100))
		due, errDue := s.LeaseDue(g.Context(), deliveryRefs, timeAt(40), timeAt(100))
		mu.Lock()
		defer mu.Unlock()
		if ok {
			leaseCounts[leased.ID]++
		}
		for _, d := range due {
			leaseCounts[d.ID]++
		}
		return errors.Join(err, errDue)
	})
	for _, d := range ds {
		if leaseCounts[d.ID] != 1 {
			g.Errorf("%s is leased %d times, want once", d.ID, leaseCounts[d.ID])
		}
	}
}

func takenOnce(g *gateways) {
	const n = 100
	ds, outcomes := make([]Delivery, n), make([]Outcome, n)
	for i := range ds {
		ds[i] = toEndpoint("e", fmt.Sprint(i), false)
		outcomes[i] = parkedOutcome(ds[i], float64(i))
	}
	g.create(30, ds...)
	g.recordOutcomes(outcomes...)
	var mu sync.Mutex
	takeCounts := make(map[string]int)
	g.onBoth(5, func(s *Store, _, _ int) error {
		takenDeliveries, err := s.LeaseParked(g.Context(), ParkedEndpoint{Account: 1, Endpoint: "e"}, 10, time.Time{}, timeAt(500))
		mu.Lock()
		defer mu.Unlock()
		for _, d := range takenDeliveries {
			takeCounts[d.ID]++
		}
		return err
	})
	for id, count := range takeCounts {
		if count != 1 {
			g.Errorf("%s is taken %d times, want once", id, count)
		}
	}
	counts, err := g.CountParked(g.Context())
	if parkedCount := counts["e"]; err != nil || parkedCount+len(takeCounts) != n {
		g.Errorf("%d taken, %d still parked, error %v; want %d in total", len(takeCounts), parkedCount, err, n)
	}
}

// orderedOnce has both gateways create deliveries to an ordered endpoint and attempt those in
// turn: all are attempted, never two at a time.
func orderedOnce(g *gateways) {
	const n = 20
	var underWay atomic.Int64
	attempt := func(s *Store, id string) error {
		for {
			if underWay.Add(1) > 1 {
				g.Errorf("%s is attempted during another attempt", id)
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
	g.onBoth(n, func(s *Store, gateway, i int) error {
		ds := []Delivery{toEndpoint("e", fmt.Sprintf("%d-%d", gateway, i), true)}
		if _, err := s.Create(g.Context(), ds, timeAt(30)); err != nil || ds[0].WaitsFor != "" {
			return err
		}
		return attempt(s, ds[0].ID)
	})
	g.wantCounts(0, 2*n, 0)
}

func createdOnce(g *gateways) {
	const n, size = 10, 20
	var mu sync.Mutex
	added := 0
	g.onBoth(n, func(s *Store, gateway, i int) error {
		ds := make([]Delivery, size)
		for k := range ds {
			ds[k] = toEndpoint("e", fmt.Sprintf("%d-%d", i, k), true)
		}
		if gateway == 1 {
			slices.Reverse(ds)
		}
		created, err := s.Create(g.Context(), ds, timeAt(30))
		mu.Lock()
		defer mu.Unlock()
		added += len(created)
		return err
	})
	places, err := db.Values[int](g.Context(), g.db, "test", "SELECT place FROM delivery ORDER BY place")
	want := make([]int, n*size)
	for i := range want {
		want[i] = i + 1
	}
	if err != nil || added != n*size || !slices.Equal(places, want) {
		g.Errorf("%d added, places %v, error %v; want %d added", added, places, err, n*size)
	}
	if due := g.dueIDs(1000, n*size); len(due) != 1 {
		g.Errorf("due deliveries = %v, want 1", due)
	}
}

func countedOnce(g *gateways) {
	ds, outcomes := make([]Delivery, 50), []Outcome(nil)
	for i := range ds {
		ds[i] = newDelivery(fmt.Sprint(i))
		outcomes = append(outcomes, outcome(ds[i], 1, []State{Retrying, Delivered, Dead}[i%3]))
	}
	g.create(30, ds...)
	g.onBoth(4, func(s *Store, gateway, i int) error {
		ordered := slices.Clone(outcomes)
		if (gateway+i)%2 == 1 {
			slices.Reverse(ordered)
		}
		_, err := s.Finish(g.Context(), ordered)
		return err
	})
	for _, d := range ds {
		if got := g.get(d.ID); got.Tries != 1 || len(got.Attempts) != 1 {
			g.Errorf("%s: %d tries, %d attempts, want 1 of each", d.ID, got.Tries, len(got.Attempts))
		}
	}
	g.wantCounts(17, 17, 16)
}

// wantCounts compares the stored counts with the expected ones.
func (g *gateways) wantCounts(retrying, delivered, dead int) {
	g.Helper()
	got, err := g.Counts(g.Context())
	want := map[State]int{Queued: 0, Simulated: 0, Retrying: retrying, Delivered: delivered, Dead: dead}
	if err != nil || !reflect.DeepEqual(got, want) {
		g.Errorf("counts = %v, error %v; want %v", got, err, want)
	}
}

func countsStay(g *gateways) {
	var ids []string
	for i := range 30 {
		d := newDelivery(fmt.Sprint(i))
		g.create(30, d)
		g.recordOutcomes(outcome(d, 1, Dead))
		ids = append(ids, d.ID)
	}
	var mu sync.Mutex
	replayCount := 0
	g.onBoth(3, func(s *Store, _, _ int) error {
		replayed, err := s.Replay(g.Context(), refs(ids...), timeAt(2), false)
		mu.Lock()
		defer mu.Unlock()
		replayCount += len(replayed)
		return err
	})
	if replayCount != len(ids) {
		g.Errorf("replayed %d deliveries, want %d", replayCount, len(ids))
	}
	var outcomes []Outcome
	for _, id := range ids {
		outcomes = append(outcomes, outcome(newDelivery(id), 3, Delivered))
	}
	g.recordOutcomes(outcomes...)
	if _, err := g.db.Exec(g.Context(), "test", "UPDATE delivery SET expires = 1, created = 1 WHERE id LIKE '1%'"); err != nil {
		g.Fatal(err)
	}
	g.onBoth(3, func(s *Store, _, _ int) error { return s.Sweep(g.Context()) })
	g.wantCounts(0, 19, 0)
}

// finishDuring records outcomes at the first gateway while a transaction of the second one
// blocks them. The transaction runs do, waits until the outcomes wait for its lock, and runs end.
func (g *gateways) finishDuring(do, end func(s *Store, tx *db.Tx) error, outcomes ...Outcome) {
	g.Helper()
	var finished sync.WaitGroup
	defer finished.Wait()
	var started sync.Once
	s := g.stores[1]
	g.must(s.db.Write(g.Context(), "test", func(_ context.Context, tx *db.Tx) error {
		if err := do(s, tx); err != nil {
			return err
		}
		started.Do(func() {
			finished.Go(func() { g.recordOutcomes(outcomes...) })
			g.waitForLock()
		})
		return end(s, tx)
	}))
}

// waitForLock waits until a statement waits for a lock.
func (g *gateways) waitForLock() {
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
	d := newDelivery("a")
	g.create(30, d)
	g.recordOutcomes(outcome(d, 1, Delivered))
	g.finishDuring(func(s *Store, tx *db.Tx) error {
		_, err := replay(g.Context(), tx, refs("a"), timeAt(2), true)
		return err
	}, func(*Store, *db.Tx) error { return nil }, outcome(d, 3, Delivered))
	if got := g.get("a"); got.State != Delivered || len(got.Attempts) != 2 {
		g.Errorf("%s, %d attempts, want %s after 2", got.State, len(got.Attempts), Delivered)
	}
}

// finishedAfterDeadlock records outcomes that lock a and then wait for b, while another
// transaction has locked b and then waits for a. PostgreSQL aborts the transaction of the
// outcomes, which has waited longer.
func finishedAfterDeadlock(g *gateways) {
	a, b := newDelivery("a"), newDelivery("b")
	g.create(30, a, b)
	g.recordOutcomes(outcome(b, 1, Delivered))
	lock := func(id string) func(s *Store, tx *db.Tx) error {
		return func(_ *Store, tx *db.Tx) error {
			_, err := db.List(g.Context(), tx, "test", "SELECT id, account FROM delivery WHERE account = 1 AND id = $1 FOR UPDATE", refFields, id)
			return err
		}
	}
	g.finishDuring(lock("b"), lock("a"), outcome(a, 2, Delivered), outcome(b, 2, Delivered))
	for id, attempts := range map[string]int{"a": 1, "b": 2} {
		if got := g.get(id); got.State != Delivered || len(got.Attempts) != attempts {
			g.Errorf("%s: %s, %d attempts, want %s after %d", id, got.State, len(got.Attempts), Delivered, attempts)
		}
	}
}
