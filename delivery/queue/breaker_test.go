package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay/outbox"
)

// breakerStore is a store of breakers in memory.
type breakerStore struct {
	mu   sync.Mutex
	down bool
	open map[string]outbox.Breaker
}

func (s *breakerStore) do(change func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("down")
	}
	change()
	return nil
}

func (s *breakerStore) Open(_ context.Context, b outbox.Breaker) error {
	return s.do(func() { s.open[b.Endpoint] = b })
}

func (s *breakerStore) Close(_ context.Context, endpoint string) error {
	return s.do(func() { delete(s.open, endpoint) })
}

func (s *breakerStore) List(context.Context) (list []outbox.Breaker, err error) {
	err = s.do(func() {
		for _, b := range s.open {
			list = append(list, b)
		}
	})
	return list, err
}

// panel is breakers with a clock of their own.
type panel struct {
	*breakers
	clock time.Time
}

func newPanel(store outbox.Breakers) *panel {
	p := &panel{clock: time.Unix(1_800_000_000, 0)}
	p.breakers = newBreakers(withDefaultDeps(Deps{
		Breakers: store, Now: func() time.Time { return p.clock }, Rand: func() float64 { return 0.5 }, Logger: quiet(),
	}), withDefaults(Options{}))
	return p
}

func toEndpoint() *outbox.Delivery {
	return &outbox.Delivery{ID: "d", Account: 1, Relay: "v1", Endpoint: "e", Request: &outbox.Request{URL: "http://u:p@h/in?m=text"}}
}

// try asks for passage and, where there is one, reports how the attempt went.
func (p *panel) try(class delivery.Class, status int) permit {
	d := toEndpoint()
	through, _ := p.acquire(d)
	if through != permitNone {
		p.release(d, through, attempt.Result{
			Attempt: outbox.Attempt{Status: status}, Verdict: delivery.Verdict{Class: class, Reason: "why"},
		})
	}
	return through
}

func (p *panel) isOpen() bool { open, _ := p.state("e"); return open }

func (p *panel) fail(n int) {
	for range n {
		p.try(delivery.Retry, 500)
	}
}

func TestWhatOpensABreaker(t *testing.T) {
	cases := []struct {
		name string
		run  func(p *panel)
		open bool
	}{
		{"nine failures do not", func(p *panel) { p.fail(9) }, false},
		{"ten failures in a row do", func(p *panel) { p.fail(10) }, true},
		{"an endpoint that does not answer at all fails too", func(p *panel) {
			for range 10 {
				p.try(delivery.Retry, 0)
			}
		}, true},
		{"a delivery between them begins the row anew", func(p *panel) { p.fail(9); p.try(delivery.Delivered, 200); p.fail(9) }, false},
		{"a refusal for good shows that the endpoint works", func(p *panel) { p.fail(9); p.try(delivery.Dead, 404); p.fail(9) }, false},
		{"what never left shows nothing", func(p *panel) { p.fail(9); p.try(delivery.Dead, 0); p.fail(1) }, true},
		{"a fault of our own shows nothing", func(p *panel) { p.fail(9); p.try(delivery.Fault, 0); p.fail(1) }, true},
		{"refusals for good never do", func(p *panel) {
			for range 50 {
				p.try(delivery.Dead, 410)
			}
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPanel(nil)
			c.run(p)
			if open := p.isOpen(); open != c.open {
				t.Errorf("open %v, want %v", open, c.open)
			}
		})
	}
}

func TestProbes(t *testing.T) {
	p := newPanel(nil)
	p.fail(10)
	d := toEndpoint()
	for _, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
		if got, why := p.acquire(d); got != permitNone || why != "why" {
			t.Fatalf("too early: %v, %q", got, why)
		}
		p.clock = p.clock.Add(wait * time.Second)
		if got, _ := p.acquire(d); got != permitProbe {
			t.Fatalf("after %d s: %v", wait, got)
		}
		if got, _ := p.acquire(d); got != permitNone {
			t.Fatalf("beside the probe: %v", got)
		}
		p.release(d, permitProbe, attempt.Result{Verdict: delivery.Verdict{Class: delivery.Retry, Reason: "why"}})
	}
	p.clock = p.clock.Add(time.Minute)
	if got := p.try(delivery.Fault, 0); got != permitProbe || !p.isOpen() {
		t.Errorf("a probe that was our own fault: %v", got)
	}
	p.clock = p.clock.Add(time.Minute)
	through, _ := p.acquire(d)
	p.release(d, through, attempt.Result{Verdict: delivery.Verdict{Class: delivery.Retry, RetryAfter: time.Hour}})
	p.clock = p.clock.Add(59 * time.Minute)
	if got, _ := p.acquire(d); got != permitNone {
		t.Errorf("before the time that the endpoint asked for: %v", got)
	}
	p.clock = p.clock.Add(time.Minute)
	if got := p.try(delivery.Delivered, 204); got != permitProbe || p.isOpen() {
		t.Errorf("a probe that arrived: %v, open %v", got, p.isOpen())
	}
	if got, _ := p.acquire(d); got != permitAttempt {
		t.Errorf("closed: %v", got)
	}
	if open, opened, probed := p.count(); open != 0 || opened != 1 || probed != 9 {
		t.Errorf("open %d, opened %d, probed %d", open, opened, probed)
	}
}

func TestAnAttemptBegunBeforeClosesTheBreaker(t *testing.T) {
	p := newPanel(nil)
	d := toEndpoint()
	through, _ := p.acquire(d)
	p.fail(10)
	p.release(d, through, attempt.Result{Verdict: delivery.Verdict{Class: delivery.Delivered}})
	if p.isOpen() {
		t.Error("it is open although the endpoint works")
	}
}

func TestOpenBreakersAreSharedAndSurvive(t *testing.T) {
	s := &breakerStore{open: make(map[string]outbox.Breaker)}
	a, b := newPanel(s), newPanel(s)
	share := func(ps ...*panel) {
		t.Helper()
		for _, p := range ps {
			if err := p.share(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.down = true
	a.fail(10)
	if err := a.share(t.Context()); err == nil || !a.isOpen() {
		t.Errorf("a store that is down: error %v, open %v", err, a.isOpen())
	}
	s.down = false
	share(a, b)
	if !b.isOpen() {
		t.Fatal("the other gateway does not know")
	}
	if got := s.open["e"]; got.Account != 1 || got.Relay != "v1" || got.Reason != "why" || got.Target != "http://***@h/in?m=***" || got.OpenedAt.IsZero() {
		t.Errorf("saved %+v", got)
	}
	restarted := newPanel(s)
	share(restarted)
	if !restarted.isOpen() {
		t.Error("a restart has forgotten it")
	}
	b.clock = b.clock.Add(5 * time.Second)
	b.try(delivery.Retry, 500)
	share(b, a)
	a.clock = b.clock.Add(5 * time.Second)
	if got := a.try(delivery.Retry, 500); got != permitNone {
		t.Errorf("the other's probe does not count here: %v", got)
	}
	a.clock = a.clock.Add(5 * time.Second)
	if got := a.try(delivery.Delivered, 200); got != permitProbe {
		t.Fatalf("got %v", got)
	}
	share(a, b, restarted)
	if b.isOpen() || restarted.isOpen() || len(s.open) != 0 {
		t.Error("closed here, open elsewhere")
	}
	b.fail(10)
	share(b, a)
	if err := s.Close(t.Context(), "e"); err != nil {
		t.Fatal(err)
	}
	share(a, b)
	if slices.Contains([]bool{a.isOpen(), b.isOpen()}, true) {
		t.Error("what a person closed is open")
	}
}

func TestABreakerThatNothingWaitsForIsForgotten(t *testing.T) {
	p := newPanel(nil)
	p.fail(10)
	line := []outbox.ParkedEndpoint{{Account: 1, Endpoint: "e", Count: 1}}
	for _, step := range []struct {
		later time.Duration
		lines []outbox.ParkedEndpoint
		open  bool
	}{{time.Hour, nil, true}, {time.Minute, line, true}, {time.Hour, line, true}, {time.Second, nil, false}} {
		p.clock = p.clock.Add(step.later)
		p.closeIdle(step.lines)
		if p.isOpen() != step.open {
			t.Errorf("after %s more, %d lines: open %v", step.later, len(step.lines), !step.open)
		}
	}
}
