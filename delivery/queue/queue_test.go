package queue

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/embedded/redis"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAThousandDeliveriesArriveExactlyOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{}, nil)
	s := newSink(t, always(204))
	r.send(r.deliveries(1000, s.URL))
	r.await(outbox.Delivered, 1000)
	s.expect(t, 1000, 1000)
}

func TestRetriesArriveOnEveryKindOfRedis(t *testing.T) {
	t.Parallel()
	for name, setUp := range map[string]func(t *testing.T) backends{
		"a cluster": func(t *testing.T) backends { return newBackends(t, redistest.StartCluster(t).URL) },
		"the embedded server": func(t *testing.T) backends {
			s := relaytest.Must(redis.Start(redis.Options{}))(t)
			t.Cleanup(func() { _ = s.Close() })
			return newBackendsWith(t, recordstest.Open(t), cache.Options{Dialer: s.Dial})
		},
		"a single Redis": func(t *testing.T) backends { return newBackends(t, redistest.Shared(t).NewDatabase(t)) },
		"a single Redis with records in PostgreSQL": func(t *testing.T) backends {
			r := recordstest.OpenURL(t, dbtest.Shared(t).NewDatabase(t))
			return newBackendsWith(t, r, cache.Options{URL: redistest.Shared(t).NewDatabase(t)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setUp(t), Options{}, delivery.Schedule{time.Second})
			s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 503, false: 200}[n == 1] })
			r.send(r.deliveries(300, s.URL))
			r.await(outbox.Delivered, 300)
			s.expect(t, 300, 600)
		})
	}
}

func TestAQueueStartsWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	b := newBackends(t, server.URL)
	r := newRig(t, b, Options{}, nil)
	s := newSink(t, always(200))
	server.Restart()
	r.create(r.deliveries(10, s.URL), 0)
	r.await(outbox.Delivered, 10)
	s.expect(t, 10, 10)
}

func TestDeliveriesThatAsynqLostAreAttemptedInProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	b := newBackends(t, server.URL)
	r := newRig(t, b, Options{}, nil)
	s := newSink(t, always(200))
	ds := r.deliveries(5, s.URL)
	for _, d := range ds { // tasks that asynq will never run
		key := "asynq:{deliveries}:t:" + d.ID
		relaytest.NoError(t, rdb.HSet(t.Context(), key, "state", "active", "msg", "").Err())
	}
	r.create(ds, 0)
	r.await(outbox.Delivered, 5)
	s.expect(t, 5, 5)
}

func TestTheScheduleIsFollowedAndAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{}, delivery.Schedule{200 * time.Millisecond, 400 * time.Millisecond})
	s := newSink(t, always(500))
	for _, d := range r.sendUntilDead(2, s.URL, 3) {
		stored := r.get(d)
		if !strings.Contains(stored.Reason, "no attempts left after 3") {
			t.Errorf("reason = %q, want it to contain: no attempts left after 3", stored.Reason)
		}
		// A delay has no upper bound, and jitter shortens it by at most a fifth.
		for i, shortest := range []time.Duration{160 * time.Millisecond, 320 * time.Millisecond} {
			if delay := stored.Attempts[i+1].At.Sub(stored.Attempts[i].At); delay < shortest {
				t.Errorf("retry %d came after %s, want at least %s", i+1, delay, shortest)
			}
		}
	}
	s.expect(t, 2, 6)
}

func TestAReplayOfADeadDeliveryArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{}, nil)
	s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 410, false: 200}[n == 1] })
	ds := r.deliveries(3, s.URL)
	r.send(ds)
	r.await(outbox.Dead, 3)
	r.expectAttempts(ds[0], 1, 1) // 410 is not retried
	page, _, err := r.store.List(t.Context(), outbox.Filter{State: outbox.Dead})
	relaytest.NoError(t, err)
	var refs []outbox.Ref
	for _, d := range page {
		refs = append(refs, outbox.Ref{Account: d.Account, ID: d.ID})
	}
	changed := relaytest.Must(r.store.Replay(t.Context(), refs, time.Now(), false))(t)
	relaytest.Equal(t, "the number of replayed deliveries", len(changed), 3)
	r.await(outbox.Delivered, 3)
	r.expectAttempts(ds[0], 1, 2)
}

func TestDeliveriesOfACrashedProcessAreSentWhenTheirLeaseEnds(t *testing.T) {
	t.Parallel()
	s := newSink(t, always(200))
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{}, nil)
	r.create(r.deliveries(50, s.URL), 500*time.Millisecond)
	r.await(outbox.Delivered, 50)
	s.expect(t, 50, 50)
}

func TestAnEndpointThatHangsDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{Attempts: 16, PerEndpoint: 4, EndpointBacklog: 20}, nil)
	hanging, start := newHangingSink(t), time.Now()

	r.send(r.deliveries(100, hanging.URL))
	redistest.Await(t, "the endpoint hangs", func(context.Context) bool {
		_, total := hanging.count()
		return total == 4
	})
	var healthy []*sink
	for range 20 {
		s := newSink(t, always(200))
		healthy = append(healthy, s)
		r.send(r.deliveries(10, s.URL))
	}
	for _, s := range healthy {
		redistest.Await(t, "a healthy endpoint gets all its deliveries", func(context.Context) bool {
			distinct, _ := s.count()
			return distinct == 10
		})
	}
	// Each of the four concurrent requests times out after 10 s, and another one follows.
	if _, total := hanging.count(); total > 4*(1+int(time.Since(start)/(10*time.Second))) {
		t.Errorf("the hanging endpoint got %d requests within %s, want at most 4 per 10s", total, time.Since(start))
	}
	r.await(outbox.Delivered, 200)
}

// killableServers returns, for each kind of server, a function that starts one and returns
// back ends that use the server and functions that kill and start it.
func killableServers() map[string]func(t *testing.T) (b backends, kill, start func()) {
	return map[string]func(t *testing.T) (backends, func(), func()){
		"Redis": func(t *testing.T) (backends, func(), func()) {
			server := redistest.Start(t)
			return newBackends(t, server.URL), server.Stop, server.Restart
		},
		"Redis without persistence": func(t *testing.T) (backends, func(), func()) {
			server := redistest.Start(t, "--appendonly", "no")
			return newBackends(t, server.URL), server.Stop, server.Restart
		},
		"PostgreSQL": func(t *testing.T) (backends, func(), func()) {
			server := dbtest.StartPostgres(t)
			r := recordstest.OpenURL(t, server.NewDatabase(t))
			return newBackendsWith(t, r, cache.Options{URL: redistest.Shared(t).NewDatabase(t)}), server.Kill, server.Start
		},
	}
}

func TestAServerKilledBeforeOutcomesAreSavedLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, server := range killableServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, kill, start := server(t)
			r := newRig(t, b, Options{Lease: 20 * time.Second, PerEndpoint: 64}, nil)
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s := newSink(t, always(200))
			s.onRequest = func(*http.Request) {
				if _, total := s.count(); total > 400 {
					once.Do(func() { close(reached) })
					<-release
				}
			}
			r.sendInOneBatch(r.deliveries(1000, s.URL))
			<-reached
			kill()
			downtimeEnd := time.After(4 * time.Second)
			close(release)
			<-downtimeEnd
			start()
			r.await(outbox.Delivered, 1000)
			r.expectRepeats(s, 1000, 1)
		})
	}
}

// expectRepeats checks that n deliveries arrived, in at most n+maxRepeats requests, and that
// none is dead.
func (r *rig) expectRepeats(s *sink, n, maxRepeats int) {
	r.t.Helper()
	counts := relaytest.Must(r.store.Counts(r.t.Context()))(r.t)
	relaytest.Equal(r.t, "the number of dead deliveries", counts[outbox.Dead], 0)
	distinct, total := s.count()
	r.t.Logf("%d deliveries in %d requests", distinct, total)
	relaytest.Equal(r.t, "the number of deliveries", distinct, n)
	if total > n+maxRepeats {
		r.t.Errorf("%d requests for %d deliveries, want at most %d more requests than deliveries", total, n, maxRepeats)
	}
}

func TestRetriesSurviveAKilledServer(t *testing.T) {
	t.Parallel()
	for name, server := range killableServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, kill, start := server(t)
			r := newRig(t, b, Options{}, delivery.Schedule{time.Second, time.Second, time.Second})
			s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 200, false: 503}[n == 3] })
			ds := r.deliveries(100, s.URL)
			r.send(ds)
			r.await(outbox.Queued, 0) // each has been attempted; on a slow machine some are delivered already
			kill()
			start()
			r.await(outbox.Delivered, 100)
			s.expect(t, 100, 300)
			relaytest.Equal(t, "the counted attempts", r.get(ds[0]).Tries, 3)
		})
	}
}

func TestStopFinishesAttemptsInFlightAndReleasesWaitingDeliveries(t *testing.T) {
	t.Parallel()
	b := newBackends(t, redistest.Shared(t).NewDatabase(t))
	r := newRig(t, b, Options{PerEndpoint: 2}, nil)
	begun, release := make(chan struct{}, 100), make(chan struct{})
	s := newSink(t, always(200))
	s.onRequest = func(*http.Request) { begun <- struct{}{}; <-release }
	r.send(r.deliveries(10, s.URL))
	<-begun
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	redistest.Await(t, "waiting deliveries are released", func(ctx context.Context) bool {
		refs, err := r.store.Due(ctx, time.Now(), 100)
		return err == nil && len(refs) == 8
	})
	close(release)
	<-stopped
	r.await(outbox.Delivered, 2)

	restarted := newRig(t, b, Options{}, nil)
	restarted.await(outbox.Delivered, 10)
	s.expect(t, 10, 10)
}

// slowStore is a store that saves outcomes after release is closed.
type slowStore struct {
	Store
	release chan struct{}
}

func (s slowStore) Finish(ctx context.Context, os []outbox.Outcome) ([]outbox.Ref, error) {
	<-s.release
	return s.Store.Finish(ctx, os)
}

// A slow store may release a lease twice. The second time, the delivery may have been sent and
// its outcome may not be saved yet.
func TestALateReleaseSendsNothingTwice(t *testing.T) {
	t.Parallel()
	b := newBackends(t, redistest.Shared(t).NewDatabase(t))
	slow := slowStore{b.store, make(chan struct{})}
	b.store = slow
	r := newRig(t, b, Options{}, nil)
	s := newSink(t, always(204))
	ds := r.deliveries(1, s.URL)
	r.send(ds)
	redistest.Await(t, "the outcome waits", func(context.Context) bool {
		st := r.queue.Stats()
		return st.Unsaved == 1 && st.Running == 0
	})
	ref := outbox.Ref{Account: ds[0].Account, ID: ds[0].ID}
	relaytest.NoError(t,
		r.store.Release(t.Context(), []outbox.Lease{{Ref: ref, End: time.Now().Add(time.Hour)}}, time.Now()),
		r.queue.attemptDue(t.Context(), []outbox.Ref{ref}),
	)
	if got := r.get(ds[0]); got.State != outbox.Queued || got.NextAttemptAt.After(time.Now()) {
		t.Errorf("the delivery was leased again: state = %s, due at %s", got.State, got.NextAttemptAt)
	}
	close(slow.release)
	r.await(outbox.Delivered, 1)
	r.stop()
	s.expect(t, 1, 1)
}

func TestNothingIsAttemptedWhileTheGateIsClosed(t *testing.T) {
	t.Parallel()
	server := relaytest.Must(redis.Start(redis.Options{}))(t)
	t.Cleanup(func() { _ = server.Close() })
	b, gate := newBackendsWith(t, recordstest.Open(t), cache.Options{Dialer: server.Dial}), gateway.NewGate()
	b.gate = gate
	r := newRig(t, b, Options{Reconcile: 20 * time.Millisecond}, nil)
	s := newSink(t, always(204))
	s.onRequest = func(*http.Request) {
		if gate.Closed() {
			t.Error("an attempt was made while the gate is closed")
		}
	}
	r.send(r.deliveries(5, s.URL))      // the queue releases their leases
	r.create(r.deliveries(5, s.URL), 0) // due
	redistest.Await(t, "ten deliveries are due", func(ctx context.Context) bool {
		due, err := r.store.Due(ctx, time.Now(), 20)
		return err == nil && len(due) == 10
	})
	relaytest.Equal(t, "the due deliveries that are scheduled", r.queue.reconciler.Pass(t.Context()), 0)
	gate.Open()
	r.await(outbox.Delivered, 10)
	s.expect(t, 10, 10)
}
