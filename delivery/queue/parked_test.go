package queue

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// quickProbes are options with short intervals between probes.
func quickProbes() Options {
	return Options{Probe: 50 * time.Millisecond, ProbeMax: 200 * time.Millisecond, Reconcile: 50 * time.Millisecond}
}

// awaitParked waits until at least n deliveries wait for a breaker. On a slow machine,
// deliveries that failed earlier may be due again and then wait too.
func (r *rig) awaitParked(n int) {
	r.t.Helper()
	redistest.Await(r.t, fmt.Sprintf("%d deliveries wait for the breaker", n), func(ctx context.Context) bool {
		page, _, err := r.store.List(ctx, outbox.Filter{WaitsFor: outbox.WaitsForBreaker, Limit: 1000})
		return err == nil && len(page) >= n
	})
}

func TestABreakerParksDeliveriesUntilTheEndpointWorks(t *testing.T) {
	t.Parallel()
	b := newBackends(t, redistest.Shared(t).NewDatabase(t))
	r := newRig(t, b, quickProbes(), nil)
	var works atomic.Bool
	s := newSink(t, func(string, int) int { return map[bool]int{true: 200, false: 503}[works.Load()] })
	failing := r.deliveries(10, s.URL)
	r.send(failing)
	r.await(outbox.Retrying, 10)
	ds := r.deliveries(500, s.URL)
	r.send(ds)
	r.awaitParked(500)
	redistest.Await(t, "the endpoint is probed repeatedly", func(context.Context) bool {
		st := r.queue.Stats()
		return st.Probed >= 5 && st.Open == 1 && st.Parked >= 499
	})
	_, total := s.count()
	if probed := r.queue.Stats().Probed; total < 10 || int64(total) > 10+probed {
		t.Errorf("%d requests with %d probes, want 10, and at most one more for each probe", total, probed)
	}
	for _, d := range ds {
		if got := r.get(d); got.Tries != 0 || got.State.Ended() {
			t.Fatalf("delivery %s is %s after %d counted attempts, want it waiting without an attempt", d.ID, got.State, got.Tries)
		}
	}
	r.stop()

	restarted := newRig(t, b, quickProbes(), nil)
	redistest.Await(t, "the breaker is open after a restart", func(context.Context) bool { return restarted.queue.Stats().Open == 1 })
	works.Store(true)
	restarted.await(outbox.Delivered, 500+10)
	got := restarted.get(ds[0])
	relaytest.Equal(t, "the counted attempts", got.Tries, 1)
	relaytest.Equal(t, "the reason to wait", got.WaitsFor, "")
	redistest.Await(t, "nothing is parked and no breaker is open", func(ctx context.Context) bool {
		parked, err := restarted.store.ParkedEndpoints(ctx)
		open, listErr := restarted.redis.Breakers().List(ctx)
		return err == nil && listErr == nil && len(parked) == 0 && len(open) == 0 && restarted.queue.Stats().Parked == 0
	})
}

func TestARestartWithAnEmptiedRedisUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBackends(t, server.URL)
	r := newRig(t, b, quickProbes(), nil)
	s := newSink(t, always(503))
	r.send(r.deliveries(10, s.URL))
	r.await(outbox.Retrying, 10)
	ds := r.deliveries(100, s.URL)
	r.send(ds)
	r.awaitParked(100)
	r.stop()
	relaytest.NoError(t, server.Client().FlushAll(t.Context()).Err())
	restarted := newRig(t, b, quickProbes(), nil)
	redistest.Await(t, "the endpoint is probed again", func(context.Context) bool {
		st := restarted.queue.Stats()
		return st.Probed >= 3 && st.Open == 1
	})
	for _, d := range ds {
		got := restarted.get(d)
		if got.Tries != 0 {
			t.Fatalf("delivery %s has %d counted attempts, want none", d.ID, got.Tries)
		}
		for i := 1; i < len(got.Attempts); i++ { // on a busy machine, a probe may also time out
			if got.Attempts[i].Reason == got.Attempts[i-1].Reason {
				t.Errorf("attempts of delivery %s = %+v, want one for all probes that failed for the same reason", d.ID, got.Attempts)
			}
		}
	}
}

func TestABreakerParksForALimitedTimeAndUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	o := quickProbes()
	o.Probe, o.ProbeMax = time.Hour, time.Hour
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), o, delivery.Schedule{time.Second, time.Second})
	s := newSink(t, always(500))
	r.sendUntilDead(100, s.URL, 3)
	relaytest.Equal(t, "the number of times that the breaker opened", r.queue.Stats().Opened, 1)
}

func TestAnOrderedEndpointGetsOneDeliveryAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), quickProbes(), delivery.Schedule{200 * time.Millisecond, 200 * time.Millisecond})
	s, order := newRecordingSink(t, func(id string, n int) int {
		switch {
		case id[len(id)-1] == '3' && n < 3:
			return 503
		case id[len(id)-1] == '6':
			return 404
		}
		return 200
	})
	ds := r.deliveries(30, s.URL)
	var want []string
	for i := range ds {
		ds[i].Endpoint, ds[i].Pace.Ordered = "ordered", true
		want = append(want, ds[i].ID)
		if ds[i].ID[len(ds[i].ID)-1] == '3' {
			want = append(want, ds[i].ID, ds[i].ID)
		}
	}
	r.send(ds)
	r.await(outbox.Delivered, 27)
	r.await(outbox.Dead, 3)
	relaytest.Equal(t, "the order of the requests", *order, want)
}

func TestOrderIsKeptAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBackends(t, redistest.Shared(t).NewDatabase(t))
	crashed := newRig(t, b, Options{Lease: 5 * time.Second}, nil)
	s, order := newRecordingSink(t, always(200))
	ds := crashed.deliveries(10, s.URL)
	var want []string
	for i := range ds {
		ds[i].Endpoint, ds[i].Pace.Ordered = "ordered", true
		want = append(want, ds[i].ID)
	}
	crashed.stop()
	crashed.create(ds, time.Millisecond) // as if the process had crashed before Dispatch
	restarted := newRig(t, b, Options{}, nil)
	restarted.await(outbox.Delivered, 10)
	relaytest.Equal(t, "the order of the requests", *order, want)
}

// Retries come from asynq. Here it has fewer workers than the hanging endpoint has attempts.
func TestRetriesToAHangingEndpointDelayNoOtherEndpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{Tasks: 4, Attempts: 64, PerEndpoint: 8}, nil)
	hanging := newHangingSink(t)
	r.create(r.deliveries(100, hanging.URL), 0)
	redistest.Await(t, "the endpoint hangs", func(context.Context) bool {
		_, total := hanging.count()
		return total == 8
	})
	healthy := newSink(t, always(200))
	r.create(r.deliveries(50, healthy.URL), 0)
	redistest.Await(t, "a healthy endpoint gets all its retries", func(context.Context) bool {
		distinct, _ := healthy.count()
		return distinct == 50
	})
	if _, total := hanging.count(); total != 8 {
		t.Errorf("the hanging endpoint has %d attempts in flight, want 8", total)
	}
}

// One path of a host may hang while its other paths work.
func TestAHangingEndpointDelaysNoOtherEndpointOfItsHost(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newSink(t, always(200))
	s.onRequest = func(r *http.Request) {
		if r.URL.Path == "/hangs" {
			<-release
		}
	}
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{}, nil)
	t.Cleanup(func() { close(release) })
	for i := range 4 {
		stuck := r.deliveries(100, s.URL)
		for j := range stuck {
			stuck[j].Endpoint, stuck[j].Request.URL = fmt.Sprintf("stuck%d", i), s.URL+"/hangs?id="+stuck[j].ID
		}
		r.send(stuck)
	}
	redistest.Await(t, "four endpoints hang", func(context.Context) bool {
		_, total := s.count()
		return total == 4*32
	})
	ds := r.deliveries(200, s.URL)
	for i := range ds {
		ds[i].Endpoint = fmt.Sprintf("healthy%d", i%50)
	}
	r.send(ds)
	r.await(outbox.Delivered, 200)
}

func TestParkedDeliveriesAreReleasedWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := newRig(t, newBackends(t, server.URL), quickProbes(), nil)
	var works atomic.Bool
	s := newSink(t, func(string, int) int { return map[bool]int{true: 200, false: 503}[works.Load()] })
	r.send(r.deliveries(10, s.URL))
	r.await(outbox.Retrying, 10)
	ds := r.deliveries(20, s.URL)
	r.send(ds)
	r.awaitParked(20)
	server.Stop()
	works.Store(true)
	redistest.Await(t, "the breaker closes and the parked deliveries are delivered", func(context.Context) bool {
		for _, d := range ds {
			if r.get(d).State != outbox.Delivered {
				return false
			}
		}
		return true
	})
}

// slowCounter is a store in which counting takes two seconds.
type slowCounter struct {
	Store
	clock     *relaytest.Clock
	endpoints []outbox.ParkedEndpoint
	calls     int // of CountParked
}

func (s *slowCounter) ParkedEndpoints(context.Context) ([]outbox.ParkedEndpoint, error) {
	return s.endpoints, nil
}

func (s *slowCounter) CountParked(context.Context) (map[string]int, error) {
	s.calls++
	s.clock.Advance(2 * time.Second)
	return map[string]int{"e": 100_000 * s.calls, "f": 1}, nil
}

func (*slowCounter) LeaseParked(context.Context, outbox.ParkedEndpoint, int, time.Time, time.Time) ([]outbox.Delivery, error) {
	return nil, nil
}

func TestCountingParkedDeliveriesTakesOnePercentOfTheTime(t *testing.T) {
	t.Parallel()
	clock := relaytest.NewClock(time.Unix(1_800_000_000, 0))
	s := &slowCounter{clock: clock, endpoints: []outbox.ParkedEndpoint{{Account: 1, Endpoint: "e"}, {Account: 1, Endpoint: "f"}}}
	b := newBackends(t, redistest.Shared(t).NewDatabase(t))
	q := relaytest.Must(New(Deps{Store: s, Redis: b.redis, Now: clock.Now, Logger: testLogger()}, Options{}))(t)
	pass := func() { q.startDueParked(t.Context()); clock.Advance(time.Second) }
	for range 198 {
		pass()
	}
	relaytest.Equal(t, "calls of CountParked and parked deliveries", [2]int{s.calls, q.Stats().Parked}, [2]int{1, 100_001})
	pass()
	relaytest.Equal(t, "calls of CountParked and parked deliveries after 200 seconds", [2]int{s.calls, q.Stats().Parked}, [2]int{2, 200_001})
	endpoints := s.endpoints
	s.endpoints = nil
	pass()
	relaytest.Equal(t, "parked deliveries after all were released", q.Stats().Parked, 0)
	s.endpoints = endpoints
	pass()
	relaytest.Equal(t, "parked deliveries when the endpoints have some again", q.Stats().Parked, 300_001)
}
