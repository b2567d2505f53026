package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay/outbox"
)

// passage is what a breaker lets a delivery do.
type passage int

const (
	pass  passage = iota // make an attempt as any other
	probe                // make one that uses up no attempt
	hold                 // wait
)

// breakers know which endpoints fail. Failures in a row are counted by each
// gateway for itself; which breakers are open is shared through the store, so
// that a restart finds them and one gateway's probe is every gateway's.
type breakers struct {
	store  outbox.Breakers // nil shares with nobody
	opts   Options
	now    func() time.Time
	random func() float64
	log    *slog.Logger

	mu     sync.Mutex
	row    map[string]int // failures in a row where the breaker is closed
	open   map[string]*tripped
	closed map[string]bool // closed here, and the store does not know yet
	opened int64
	probed int64
}

// tripped is an open breaker.
type tripped struct {
	outbox.Breaker
	probing bool
	unsaved bool
}

func newBreakers(d Deps, o Options) *breakers {
	return &breakers{
		store: d.Breakers, opts: o, now: d.Now, random: d.Rand, log: d.Logger,
		row: make(map[string]int), open: make(map[string]*tripped), closed: make(map[string]bool),
	}
}

// enter asks for the passage of a delivery and why it is held, if it is.
func (b *breakers) enter(d *outbox.Delivery) (passage, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.open[d.Lane()]
	switch {
	case g == nil:
		return pass, ""
	case g.probing || b.now().Before(g.ProbeAt):
		return hold, g.Reason
	}
	g.probing = true
	b.probed++
	return probe, ""
}

// leave notes how an attempt went. An answer that decides, for or against the
// delivery, shows an endpoint that works; what never reached it shows nothing.
func (b *breakers) leave(d *outbox.Delivery, p passage, r worker.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lane, v := d.Lane(), r.Verdict
	g := b.open[lane]
	switch {
	case v.Class == delivery.Delivered, v.Class == delivery.Dead && r.Attempt.Status != 0:
		delete(b.row, lane)
		if g != nil {
			b.close(g)
		}
	case g == nil && v.Class == delivery.Retry:
		b.row[lane]++
		if b.opts.BreakAfter > 0 && b.row[lane] >= b.opts.BreakAfter {
			b.trip(d, v)
		}
	case g != nil && p == probe:
		g.probing = false
		if v.Class == delivery.Retry {
			g.Probes++
			g.Reason, g.unsaved = v.Reason, true
		}
		g.ProbeAt = b.now().Add(b.wait(g.Probes, v.RetryAfter)).UTC()
	}
}

func (b *breakers) trip(d *outbox.Delivery, v delivery.Verdict) {
	lane, now := d.Lane(), b.now()
	delete(b.row, lane)
	delete(b.closed, lane)
	g := &tripped{unsaved: true, Breaker: outbox.Breaker{
		Endpoint: lane, Account: d.Account, Relay: d.Relay, Target: shown(d), Reason: v.Reason,
		OpenedAt: now.UTC(), ProbeAt: now.Add(b.wait(0, v.RetryAfter)).UTC(),
	}}
	b.open[lane] = g
	b.opened++
	b.log.Warn("breaker opened", "account", d.Account, "relay", d.Relay, "endpoint", lane, "target", g.Target, "reason", v.Reason)
}

func (b *breakers) close(g *tripped) {
	delete(b.open, g.Endpoint)
	b.closed[g.Endpoint] = true
	b.log.Info("breaker closed", "account", g.Account, "relay", g.Relay, "endpoint", g.Endpoint, "target", g.Target)
}

// wait is the time to the next probe: it doubles with every one that failed,
// and is never less than the target asked for.
func (b *breakers) wait(probes int, retryAfter time.Duration) time.Duration {
	wait := b.opts.Probe << min(probes, 16)
	if wait <= 0 || wait > b.opts.ProbeMax {
		wait = b.opts.ProbeMax
	}
	return max(time.Duration(float64(wait)*(0.8+0.4*b.random())), retryAfter)
}

func shown(d *outbox.Delivery) string {
	if d.Request == nil {
		return d.Target()
	}
	return guard.Redact(d.Request.URL)
}

// state reports whether a breaker is open, and whether it may be probed now.
func (b *breakers) state(lane string) (open, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.open[lane]
	return g != nil, g != nil && !g.probing && !b.now().Before(g.ProbeAt)
}

// share tells the store what has changed here and takes over what has changed
// elsewhere. What the store could not be told is told the next time.
func (b *breakers) share(ctx context.Context) error {
	if b.store == nil {
		return nil
	}
	open, closed := b.news()
	for _, lane := range closed {
		if err := b.store.Close(ctx, lane); err != nil {
			return err
		}
		b.told(lane, nil)
	}
	for i := range open {
		if err := b.store.Open(ctx, open[i]); err != nil {
			return err
		}
		b.told(open[i].Endpoint, &open[i])
	}
	listed, err := b.store.List(ctx)
	if err == nil {
		b.adopt(listed)
	}
	return err
}

// news returns what the store does not know.
func (b *breakers) news() (open []outbox.Breaker, closed []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for lane := range b.closed {
		closed = append(closed, lane)
	}
	for _, g := range b.open {
		if g.unsaved {
			open = append(open, g.Breaker)
		}
	}
	return open, closed
}

// told notes that the store knows, unless it has changed again meanwhile.
func (b *breakers) told(lane string, saved *outbox.Breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if saved == nil {
		delete(b.closed, lane)
	} else if g := b.open[lane]; g != nil && g.Breaker == *saved {
		g.unsaved = false
	}
}

// adopt opens what another gateway opened, closes what another closed, and
// counts others' probes as its own.
func (b *breakers) adopt(listed []outbox.Breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := make(map[string]bool, len(listed))
	for _, l := range listed {
		known[l.Endpoint] = true
		g := b.open[l.Endpoint]
		switch {
		case g == nil && !b.closed[l.Endpoint]:
			b.open[l.Endpoint] = &tripped{Breaker: l}
		case g != nil && !g.unsaved && l.Probes > g.Probes:
			g.Breaker = l
		}
	}
	for lane, g := range b.open {
		if !known[lane] && !g.unsaved {
			delete(b.open, lane)
		}
	}
}

// idleAfter is how long a breaker stays open that nothing waits for.
const idleAfter = time.Hour

// forget closes breakers that nothing has waited for since their probe was due,
// for idleAfter: of endpoints that no relay has any more, for example.
func (b *breakers) forget(lines []outbox.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted := make(map[string]bool, len(lines))
	for _, l := range lines {
		wanted[l.Endpoint] = true
	}
	for lane, g := range b.open {
		if !wanted[lane] && !g.probing && b.now().Sub(g.ProbeAt) > idleAfter {
			b.close(g)
		}
	}
}

// count returns how many are open, and how often one was opened and probed.
func (b *breakers) count() (open int, opened, probed int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open), b.opened, b.probed
}
