package queue

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// breakerStore stores breakers in memory.
type breakerStore struct {
	mu       sync.Mutex
	down     bool
	open     map[string]outbox.Breaker
	complete bool // no breaker was lost since Restored
}

func (b *breakerStore) do(change func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errors.New("down")
	}
	change()
	return nil
}

func (b *breakerStore) Open(_ context.Context, breaker outbox.Breaker) error {
	return b.do(func() { b.open[breaker.Endpoint] = breaker })
}

func (b *breakerStore) Close(_ context.Context, endpoint string) error {
	return b.do(func() { delete(b.open, endpoint) })
}

func (b *breakerStore) List(context.Context) (list []outbox.Breaker, err error) {
	err = b.do(func() {
		for _, breaker := range b.open {
			list = append(list, breaker)
		}
	})
	return list, err
}

func (b *breakerStore) Lost(context.Context) (lost bool, err error) {
	err = b.do(func() { lost = !b.complete })
	return lost, err
}

func (b *breakerStore) Restored(context.Context) error { return b.do(func() { b.complete = true }) }

// panel is a set of breakers with a clock that the test advances.
type panel struct {
	*breakers
	clock *relaytest.Clock
}

func newPanel(store Breakers) *panel {
	p := &panel{clock: relaytest.NewClock(time.Unix(1_800_000_000, 0))}
	p.breakers = newBreakers(withDefaultDeps(Deps{
		Breakers: store, Now: p.clock.Now, Rand: func() float64 { return 0.5 }, Logger: testLogger(),
	}), withDefaults(Options{}))
	return p
}

func newDelivery() *outbox.Delivery {
	return &outbox.Delivery{ID: "d", Account: 1, Relay: "v1", Endpoint: "e", Request: &outbox.Request{URL: "http://u:p@h/in?m=text"}}
}

// try acquires a permit and, unless the breaker refuses, records the result of an attempt.
func (p *panel) try(class delivery.Class, status int) permit {
	d := newDelivery()
	granted, _ := p.acquire(d)
	if granted != permitNone {
		p.record(d, granted, attempt.Result{
			Attempt: outbox.Attempt{Status: status}, Verdict: delivery.Verdict{Class: class, Reason: "refused"},
		})
	}
	return granted
}

func (p *panel) isOpen() bool { open, _ := p.state("e"); return open }

func (p *panel) fail(n int) {
	for range n {
		p.try(delivery.Retry, 500)
	}
}

func TestTenConsecutiveFailuresOpenABreaker(t *testing.T) {
	cases := []struct {
		name string
		run  func(p *panel)
		open bool
	}{
		{"nine failures", func(p *panel) { p.fail(9) }, false},
		{"ten failures in a row", func(p *panel) { p.fail(10) }, true},
		{"ten requests without a response", func(p *panel) {
			for range 10 {
				p.try(delivery.Retry, 0)
			}
		}, true},
		{"a success resets the count", func(p *panel) { p.fail(9); p.try(delivery.Delivered, 200); p.fail(9) }, false},
		{"a permanent refusal resets the count", func(p *panel) { p.fail(9); p.try(delivery.Dead, 404); p.fail(9) }, false},
		{"a request that was not sent does not count", func(p *panel) { p.fail(9); p.try(delivery.Dead, 0); p.fail(1) }, true},
		{"an internal fault does not count", func(p *panel) { p.fail(9); p.try(delivery.Fault, 0); p.fail(1) }, true},
		{"fifty permanent refusals", func(p *panel) {
			for range 50 {
				p.try(delivery.Dead, 410)
			}
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPanel(nil)
			c.run(p)
			relaytest.Equal(t, "the breaker is open", p.isOpen(), c.open)
		})
	}
}

func TestAnOpenBreakerPermitsProbesAtGrowingIntervals(t *testing.T) {
	p := newPanel(nil)
	p.fail(10)
	d := newDelivery()
	for _, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
		got, reason := p.acquire(d)
		relaytest.Equal(t, "the permit before the interval has passed", got, permitNone)
		relaytest.Equal(t, "the reason of the refusal", reason, "refused")
		p.clock.Advance(wait * time.Second)
		if got, _ := p.acquire(d); got != permitProbe {
			t.Fatalf("after %d s: the permit is %v, want a probe", wait, got)
		}
		if got, _ := p.acquire(d); got != permitNone {
			t.Fatalf("during a probe: the permit is %v, want none", got)
		}
		p.record(d, permitProbe, attempt.Result{Verdict: delivery.Verdict{Class: delivery.Retry, Reason: "refused"}})
	}
	p.clock.Advance(time.Minute)
	relaytest.Equal(t, "the permit of a probe that ends in an internal fault", p.try(delivery.Fault, 0), permitProbe)
	relaytest.Equal(t, "the breaker is open after an internal fault", p.isOpen(), true)
	p.clock.Advance(time.Minute)
	granted, _ := p.acquire(d)
	p.record(d, granted, attempt.Result{Verdict: delivery.Verdict{Class: delivery.Retry, RetryAfter: time.Hour}})
	p.clock.Advance(59 * time.Minute)
	if got, _ := p.acquire(d); got != permitNone {
		t.Errorf("before Retry-After: the permit is %v, want none", got)
	}
	p.clock.Advance(time.Minute)
	relaytest.Equal(t, "the permit of a probe that is delivered", p.try(delivery.Delivered, 204), permitProbe)
	relaytest.Equal(t, "the breaker is open after a delivery", p.isOpen(), false)
	if got, _ := p.acquire(d); got != permitAttempt {
		t.Errorf("after the breaker closed: the permit is %v, want an attempt", got)
	}
	open, opened, probed := p.count()
	relaytest.Equal(t, "open, opened and probed", [3]int64{int64(open), opened, probed}, [3]int64{0, 1, 9})
}

func TestAnAttemptThatBeganBeforeTheBreakerOpenedClosesIt(t *testing.T) {
	p := newPanel(nil)
	d := newDelivery()
	granted, _ := p.acquire(d)
	p.fail(10)
	p.record(d, granted, attempt.Result{Verdict: delivery.Verdict{Class: delivery.Delivered}})
	if p.isOpen() {
		t.Error("the breaker is open after a delivery")
	}
}

func TestOpenBreakersAreSharedAndSurviveARestart(t *testing.T) {
	s := &breakerStore{open: make(map[string]outbox.Breaker), complete: true}
	a, b := newPanel(s), newPanel(s)
	share := func(ps ...*panel) {
		t.Helper()
		for _, p := range ps {
			lost, err := p.share(t.Context())
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the store has lost breakers", lost, false)
		}
	}
	s.down = true
	a.fail(10)
	if _, err := a.share(t.Context()); err == nil {
		t.Error("share returned no error while the store is down")
	}
	relaytest.Equal(t, "the breaker is open while the store is down", a.isOpen(), true)
	s.down = false
	share(a, b)
	if !b.isOpen() {
		t.Fatal("the breaker is closed at the other gateway")
	}
	got := s.open["e"]
	if got.OpenedAt.IsZero() {
		t.Error("the saved breaker has no time")
	}
	saved := outbox.Breaker{Account: got.Account, Relay: got.Relay, Reason: got.Reason, Target: got.Target}
	relaytest.Equal(t, "the saved breaker", saved, outbox.Breaker{Account: 1, Relay: "v1", Reason: "refused", Target: "http://***@h/in?m=***"})
	restarted := newPanel(s)
	share(restarted)
	if !restarted.isOpen() {
		t.Error("the breaker is closed after a restart")
	}
	b.clock.Advance(5 * time.Second)
	b.try(delivery.Retry, 500)
	share(b, a)
	a.clock.Advance(10 * time.Second) // 5 seconds ahead of the clock of b
	relaytest.Equal(t, "the permit after a probe of the other gateway", a.try(delivery.Retry, 500), permitNone)
	a.clock.Advance(5 * time.Second)
	relaytest.Equal(t, "the permit after the interval", a.try(delivery.Delivered, 200), permitProbe)
	share(a, b, restarted)
	relaytest.Equal(t, "the breaker is open at the other gateways", []bool{b.isOpen(), restarted.isOpen()}, []bool{false, false})
	relaytest.Equal(t, "the number of stored breakers", len(s.open), 0)
	b.fail(10)
	share(b, a)
	relaytest.NoError(t, s.Close(t.Context(), "e"))
	share(a, b)
	relaytest.Equal(t, "the breaker is open after an operator closed it", []bool{a.isOpen(), b.isOpen()}, []bool{false, false})
}

func TestBreakersThatTheStoreLostAreRestored(t *testing.T) {
	s := &breakerStore{open: make(map[string]outbox.Breaker), complete: true}
	a, b := newPanel(s), newPanel(s)
	a.fail(10)
	for _, p := range []*panel{a, b} {
		relaytest.Must(p.share(t.Context()))(t)
	}
	original := s.open["e"]
	clear(s.open)
	s.complete = false
	restarted := newPanel(s)
	for _, p := range []*panel{restarted, b} {
		relaytest.Equal(t, "the store has lost breakers", relaytest.Must(p.share(t.Context()))(t), true)
	}
	relaytest.Equal(t, "the breaker is open after the loss", b.isOpen(), true)
	relaytest.NoError(t, b.restore(t.Context(), nil))
	relaytest.Equal(t, "the restored breaker", s.open["e"], original)
	relaytest.Equal(t, "the store has lost breakers after they were restored", relaytest.Must(b.share(t.Context()))(t), false)
	clear(s.open)
	relaytest.NoError(t, restarted.restore(t.Context(), []outbox.ParkedEndpoint{{Account: 1, Endpoint: "e"}}))
	relaytest.Equal(t, "the permit after a restart", restarted.try(delivery.Retry, 500), permitProbe)
	relaytest.Equal(t, "the permit after a failed probe", restarted.try(delivery.Retry, 500), permitNone)
	relaytest.Must(restarted.share(t.Context()))(t)
	got := s.open["e"]
	relaytest.Equal(t, "relay, target, reason and probes", []any{got.Relay, got.Target, got.Reason, got.Probes}, []any{original.Relay, original.Target, original.Reason, 1})
}

func TestAnIdleBreakerCloses(t *testing.T) {
	p := newPanel(nil)
	p.fail(10)
	parked := []outbox.ParkedEndpoint{{Account: 1, Endpoint: "e"}}
	for _, step := range []struct {
		elapsed time.Duration
		parked  []outbox.ParkedEndpoint
		open    bool
	}{{time.Hour, nil, true}, {time.Minute, parked, true}, {time.Hour, parked, true}, {time.Second, nil, false}} {
		p.clock.Advance(step.elapsed)
		p.closeIdle(step.parked)
		if p.isOpen() != step.open {
			t.Errorf("after another %s with %d parked endpoints: open = %t, want %t", step.elapsed, len(step.parked), !step.open, step.open)
		}
	}
}

func TestFailuresOfEndpointsThatAreNotCalledAgainAreForgotten(t *testing.T) {
	p := newPanel(nil)
	p.fail(9)
	p.clock.Advance(forgetAfter)
	p.closeIdle(nil)
	relaytest.Equal(t, "endpoints with failures after forgetAfter", len(p.failures), 1)
	p.clock.Advance(time.Second)
	p.closeIdle(nil)
	relaytest.Equal(t, "endpoints with failures a second later", len(p.failures), 0)
}
