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
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore/recordstest"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

func TestAThousandDeliveriesArriveExactlyOnce(t *testing.T) {
	r := newRig(t, onRedis(t, redistest.Start(t).URL), Options{}, nil)
	s := newSink(t, always(204))
	r.send(r.deliveries(1000, s.URL))
	r.await(outbox.Delivered, 1000)
	if different, total := s.count(); different != 1000 || total != 1000 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}

func TestRetriesArriveOnEveryKindOfRedis(t *testing.T) {
	for name, at := range map[string]func(t *testing.T) base{
		"on a cluster": func(t *testing.T) base { return onRedis(t, redistest.StartCluster(t).URL) },
		"on the embedded server": func(t *testing.T) base {
			s, err := redis.Start(redis.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return on(t, recordstest.Open(t), cache.Options{Dialer: s.Dial})
		},
		"with several asynq servers": func(t *testing.T) base { return onRedis(t, redistest.Start(t).URL) },
		"beside PostgreSQL": func(t *testing.T) base {
			r := recordstest.OpenURL(t, sqltest.StartPostgres(t).NewDatabase(t))
			return on(t, r, cache.Options{URL: redistest.Start(t).URL})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, at(t), Options{Servers: 2}, delivery.Schedule{time.Second})
			s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 503, false: 200}[n == 1] })
			r.send(r.deliveries(300, s.URL))
			r.await(outbox.Delivered, 300)
			if different, total := s.count(); different != 300 || total != 600 {
				t.Errorf("%d deliveries in %d requests, want 600", different, total)
			}
		})
	}
}

func TestAQueueStartsBeforeRedisDoes(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	b := onRedis(t, server.URL)
	r := newRig(t, b, Options{}, nil)
	s := newSink(t, always(200))
	server.Restart()
	r.create(r.deliveries(10, s.URL), 0)
	r.await(outbox.Delivered, 10)
	if _, total := s.count(); total != 10 {
		t.Errorf("%d requests", total)
	}
}

func TestWhatAsynqHasLostIsAttemptedInProcess(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	b := onRedis(t, server.URL)
	r := newRig(t, b, Options{}, nil)
	s := newSink(t, always(200))
	ds := r.deliveries(5, s.URL)
	for _, d := range ds { // tasks that nothing will ever run
		key := "asynq:{deliveries}:t:" + d.ID
		if err := rdb.HSet(t.Context(), key, "state", "active", "msg", "").Err(); err != nil {
			t.Fatal(err)
		}
	}
	r.create(ds, 0)
	r.await(outbox.Delivered, 5)
	if _, total := s.count(); total != 5 {
		t.Errorf("%d requests", total)
	}
}

func TestTheScheduleIsFollowedAndAttemptsAreCountedByUs(t *testing.T) {
	r := newRig(t, onRedis(t, redistest.Start(t).URL), Options{}, delivery.Schedule{time.Second, 2 * time.Second})
	s := newSink(t, always(500))
	ds := r.deliveries(2, s.URL)
	r.send(ds)
	r.await(outbox.Dead, 2)
	for _, d := range ds {
		got := r.get(d)
		if got.Tries != 3 || len(got.Attempts) != 3 || !strings.Contains(got.Reason, "no attempt left after 3") {
			t.Errorf("tries %d, attempts %d, reason %q", got.Tries, len(got.Attempts), got.Reason)
		}
		at := s.times(d.ID)
		if len(at) != 3 {
			t.Fatalf("%d requests", len(at))
		}
		if w := at[1].Sub(at[0]); w < 800*time.Millisecond {
			t.Errorf("first retry after %s", w)
		}
		if w := at[2].Sub(at[1]); w < 1600*time.Millisecond {
			t.Errorf("second retry after %s", w)
		}
	}
	if different, total := s.count(); different != 2 || total != 6 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}

func TestAReplayOfADeadDeliveryArrives(t *testing.T) {
	r := newRig(t, onRedis(t, redistest.Start(t).URL), Options{}, nil)
	s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 410, false: 200}[n == 1] })
	ds := r.deliveries(3, s.URL)
	r.send(ds)
	r.await(outbox.Dead, 3)
	if got := r.get(ds[0]); got.Tries != 1 || len(got.Attempts) != 1 {
		t.Errorf("410 did not end it at once: %+v", got)
	}
	page, _, err := r.store.List(t.Context(), outbox.Filter{State: outbox.Dead})
	if err != nil {
		t.Fatal(err)
	}
	var refs []outbox.Ref
	for _, d := range page {
		refs = append(refs, outbox.Ref{Account: d.Account, ID: d.ID})
	}
	if changed, err := r.store.Replay(t.Context(), refs, time.Now(), false); err != nil || len(changed) != 3 {
		t.Fatalf("changed %v, error %v", changed, err)
	}
	r.await(outbox.Delivered, 3)
	if got := r.get(ds[0]); got.Tries != 1 || len(got.Attempts) != 2 {
		t.Errorf("after the replay: %+v", got)
	}
}

func TestRecordsOfACrashedProcessAreSentOnceTheirLeaseEnds(t *testing.T) {
	s := newSink(t, always(200))
	r := newRig(t, onRedis(t, redistest.Start(t).URL), Options{}, nil)
	r.create(r.deliveries(50, s.URL), 500*time.Millisecond)
	r.await(outbox.Delivered, 50)
	if different, total := s.count(); different != 50 || total != 50 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}

func TestAnEndpointThatHangsDelaysNoOther(t *testing.T) {
	release := make(chan struct{})
	hanging := newSink(t, always(200))
	hanging.before = func(*http.Request) { <-release }
	r := newRig(t, onRedis(t, redistest.Start(t).URL), Options{Attempts: 16, PerEndpoint: 4, EndpointBacklog: 20}, nil)
	t.Cleanup(func() { close(release) })

	r.send(r.deliveries(100, hanging.URL))
	redistest.Await(t, time.Minute, "the endpoint hangs", func(context.Context) bool {
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
		redistest.Await(t, time.Minute, "a healthy endpoint gets all its deliveries", func(context.Context) bool {
			different, _ := s.count()
			return different == 10
		})
	}
	if _, total := hanging.count(); total != 4 {
		t.Errorf("the endpoint that hangs has %d attempts under way, want 4", total)
	}
	r.await(outbox.Delivered, 200)
}

// killed are the servers that may be killed under a queue: each is a base and what
// kills and starts the server.
func killed() map[string]func(t *testing.T) (b base, kill, start func()) {
	return map[string]func(t *testing.T) (base, func(), func()){
		"Redis": func(t *testing.T) (base, func(), func()) {
			server := redistest.Start(t)
			return onRedis(t, server.URL), server.Stop, server.Restart
		},
		"Redis, which keeps nothing": func(t *testing.T) (base, func(), func()) {
			server := redistest.Start(t, "--appendonly", "no")
			return onRedis(t, server.URL), server.Stop, server.Restart
		},
		"PostgreSQL": func(t *testing.T) (base, func(), func()) {
			server := sqltest.StartPostgres(t)
			r := recordstest.OpenURL(t, server.NewDatabase(t))
			return on(t, r, cache.Options{URL: redistest.Start(t).URL}), server.Kill, server.Start
		},
	}
}

func TestAServerKilledBetweenAnswerAndBookkeepingLosesAndRepeatsNothing(t *testing.T) {
	for name, server := range killed() {
		t.Run(name, func(t *testing.T) {
			b, kill, start := server(t)
			r := newRig(t, b, Options{Lease: 20 * time.Second, PerEndpoint: 64}, nil)
			reached, open := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s := newSink(t, always(200))
			s.before = func(*http.Request) {
				if _, total := s.count(); total > 400 {
					once.Do(func() { close(reached) })
					<-open
				}
			}
			r.send(r.deliveries(1000, s.URL))
			<-reached
			kill()
			down := time.After(4 * time.Second)
			close(open)
			<-down
			start()
			r.await(outbox.Delivered, 1000)
			counts, err := r.store.Counts(t.Context())
			different, total := s.count()
			if err != nil || counts[outbox.Dead] != 0 || different != 1000 || total > 1001 {
				t.Errorf("%d deliveries in %d requests, states %v, error %v", different, total, counts, err)
			}
		})
	}
}

func TestARetrySurvivesThatAServerIsKilled(t *testing.T) {
	for name, server := range killed() {
		t.Run(name, func(t *testing.T) {
			b, kill, start := server(t)
			r := newRig(t, b, Options{}, delivery.Schedule{time.Second, time.Second, time.Second})
			s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 200, false: 503}[n == 3] })
			ds := r.deliveries(100, s.URL)
			r.send(ds)
			r.await(outbox.Retrying, 100)
			kill()
			start()
			r.await(outbox.Delivered, 100)
			if different, total := s.count(); different != 100 || total != 300 {
				t.Errorf("%d deliveries in %d requests, want 300", different, total)
			}
			if got := r.get(ds[0]); got.Tries != 3 {
				t.Errorf("tries %d", got.Tries)
			}
		})
	}
}

func TestStopFinishesWhatIsUnderWayAndGivesBackTheRest(t *testing.T) {
	b := onRedis(t, redistest.Start(t).URL)
	r := newRig(t, b, Options{PerEndpoint: 2}, nil)
	begun, open := make(chan struct{}, 100), make(chan struct{})
	s := newSink(t, always(200))
	s.before = func(*http.Request) { begun <- struct{}{}; <-open }
	r.send(r.deliveries(10, s.URL))
	<-begun
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	redistest.Await(t, time.Minute, "what waited is given back", func(ctx context.Context) bool {
		refs, err := r.store.Due(ctx, time.Now(), 100)
		return err == nil && len(refs) == 8
	})
	close(open)
	<-stopped
	r.await(outbox.Delivered, 2)

	again := newRig(t, b, Options{}, nil)
	again.await(outbox.Delivered, 10)
	if different, total := s.count(); different != 10 || total != 10 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}

// slowStore is a store whose outcomes wait.
type slowStore struct {
	outbox.Store
	open chan struct{}
}

func (s slowStore) Finish(ctx context.Context, os []outbox.Outcome) ([]outbox.Ref, error) {
	<-s.open
	return s.Store.Finish(ctx, os)
}

// A store that is late may release a lease twice, the second time when the
// delivery has been sent and its outcome is not saved.
func TestALateReleaseSendsNothingTwice(t *testing.T) {
	b := onRedis(t, redistest.Start(t).URL)
	slow := slowStore{b.store, make(chan struct{})}
	b.store = slow
	r := newRig(t, b, Options{}, nil)
	s := newSink(t, always(204))
	ds := r.deliveries(1, s.URL)
	r.send(ds)
	redistest.Await(t, time.Minute, "the outcome waits", func(context.Context) bool {
		st := r.queue.Stats()
		return st.Unsaved == 1 && st.Running == 0
	})
	ref := outbox.Ref{Account: ds[0].Account, ID: ds[0].ID}
	if err := r.store.Release(t.Context(), []outbox.Lease{{Ref: ref, End: time.Now().Add(time.Hour)}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := r.queue.attemptDue(t.Context(), []outbox.Ref{ref}); err != nil {
		t.Fatal(err)
	}
	if got := r.get(ds[0]); got.State != outbox.Queued || got.NextAttemptAt.After(time.Now()) {
		t.Errorf("the delivery was leased again: %+v", got)
	}
	close(slow.open)
	r.await(outbox.Delivered, 1)
	r.stop()
	if _, total := s.count(); total != 1 {
		t.Errorf("%d requests", total)
	}
}
