package queue

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

type permit int

const (
	permitAttempt permit = iota // make a regular attempt
	permitProbe                 // make an attempt that is not counted
	permitNone                  // park the delivery
)

// Breakers stores the open breakers, for all gateways and across restarts. The breakers of
// relay/cache implement it; tests of breakers use a store without Redis.
type Breakers interface {
	Open(ctx context.Context, b outbox.Breaker) error // saves a breaker that was opened or has changed
	Close(ctx context.Context, endpoint string) error
	List(ctx context.Context) ([]outbox.Breaker, error) // in the order of opening
	// Lost reports whether the store may have lost breakers since Restored.
	Lost(ctx context.Context) (bool, error)
	// Restored records that the store has all open breakers again.
	Restored(ctx context.Context) error
}

// breakers tracks which endpoints fail. Each gateway counts consecutive failures
// by itself; open breakers are shared through the store, so that they survive a
// restart and a probe of one gateway counts for all.
type breakers struct {
	store  Breakers // nil disables sharing
	opts   Options
	now    func() time.Time
	random func() float64
	log    *slog.Logger

	mu          sync.Mutex
	failures    map[string]failures // of endpoints with a closed breaker
	open        map[string]*openBreaker
	closed      map[string]bool // closed by this gateway, but not yet in the store
	openedCount int64
	probeCount  int64
}

type failures struct {
	count  int
	lastAt time.Time
}

type openBreaker struct {
	outbox.Breaker
	probing bool
	unsaved bool
}

func newBreakers(d Deps, o Options) *breakers {
	return &breakers{
		store: d.Breakers, opts: o, now: d.Now, random: d.Rand, log: d.Logger,
		failures: make(map[string]failures), open: make(map[string]*openBreaker), closed: make(map[string]bool),
	}
}

func (b *breakers) acquire(d *outbox.Delivery) (permit, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.open[d.EndpointKey()]
	switch {
	case br == nil:
		return permitAttempt, ""
	case br.probing || b.now().Before(br.ProbeAt):
		return permitNone, br.Reason
	}
	br.probing = true
	b.probeCount++
	return permitProbe, ""
}

// record records the result of an attempt. A response that ends the delivery, as delivered or
// dead, shows that the endpoint works. An internal fault, or an address that the gateway
// refuses, shows nothing about the endpoint.
func (b *breakers) record(d *outbox.Delivery, p permit, r attempt.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	endpoint, v := d.EndpointKey(), r.Verdict
	br := b.open[endpoint]
	switch {
	case v.Class == delivery.Delivered, v.Class == delivery.Dead && r.Attempt.Status != 0:
		delete(b.failures, endpoint)
		if br != nil {
			b.close(br)
		}
	case br == nil && v.Class == delivery.Retry:
		count := b.failures[endpoint].count + 1
		b.failures[endpoint] = failures{count, b.now()}
		if count < breakAfter {
			break
		}
		delete(b.failures, endpoint)
		delete(b.closed, endpoint)
		now := b.now()
		br = &openBreaker{unsaved: true, Breaker: outbox.Breaker{
			Endpoint: endpoint, Account: d.Account, Relay: d.Relay, Target: redactedTarget(d), Reason: v.PublicReason(),
			OpenedAt: now.UTC(), ProbeAt: now.Add(b.probeDelay(0, v.RetryAfter)).UTC(),
		}}
		b.open[endpoint] = br
		b.openedCount++
		b.log.Warn("breaker opened", "account", d.Account, "relay", d.Relay, "endpoint", endpoint, "target", br.Target, "reason", v.Reason)
	case br != nil && p == permitProbe:
		br.probing = false
		if v.Class == delivery.Retry {
			br.Probes++
			br.Relay, br.Target, br.Reason, br.unsaved = d.Relay, redactedTarget(d), v.PublicReason(), true
		}
		br.ProbeAt = b.now().Add(b.probeDelay(br.Probes, v.RetryAfter)).UTC()
	}
}

func (b *breakers) close(br *openBreaker) {
	delete(b.open, br.Endpoint)
	b.closed[br.Endpoint] = true
	b.log.Info("breaker closed", "account", br.Account, "relay", br.Relay, "endpoint", br.Endpoint, "target", br.Target)
}

// probeDelay returns the delay before the next probe: it doubles with every failed probe, and
// is at least the delay that the target requested.
func (b *breakers) probeDelay(probes int, retryAfter time.Duration) time.Duration {
	wait := relay.Backoff(b.opts.Probe, b.opts.ProbeMax, probes)
	return max(time.Duration(float64(wait)*(0.8+0.4*b.random())), retryAfter)
}

func redactedTarget(d *outbox.Delivery) string {
	if d.Request == nil {
		return d.Target()
	}
	return guard.Redact(d.Request.URL)
}

func (b *breakers) state(endpoint string) (open, probeDue bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.open[endpoint]
	return br != nil, br != nil && !br.probing && !b.now().Before(br.ProbeAt)
}

// share sends local changes to the store and adopts the changes of other gateways. Changes
// that cannot be sent are sent the next time. lost means that the store may have lost
// breakers, see restore.
func (b *breakers) share(ctx context.Context) (lost bool, err error) {
	if b.store == nil {
		return false, nil
	}
	if err := b.save(ctx); err != nil {
		return false, err
	}
	listed, err := b.store.List(ctx)
	if err != nil {
		return false, err
	}
	if lost, err = b.store.Lost(ctx); err == nil {
		b.adopt(listed, lost)
	}
	return lost, err
}

// restore saves the breakers that are open in this gateway. It also opens the breakers of all
// other endpoints with parked deliveries, which are then probed at once.
func (b *breakers) restore(ctx context.Context, endpoints []outbox.ParkedEndpoint) error {
	b.mu.Lock()
	now := b.now().UTC()
	for _, e := range endpoints {
		if b.open[e.Endpoint] == nil {
			b.open[e.Endpoint] = &openBreaker{Breaker: outbox.Breaker{
				Endpoint: e.Endpoint, Account: e.Account, Reason: "the reason was lost with Redis", OpenedAt: now, ProbeAt: now,
			}}
		}
	}
	for _, br := range b.open {
		br.unsaved = true
	}
	open := len(b.open)
	b.mu.Unlock()
	if err := b.save(ctx); err != nil {
		return err
	}
	if open > 0 {
		b.log.Info("breakers restored, because Redis may have lost them", "open", open)
	}
	return b.store.Restored(ctx)
}

func (b *breakers) save(ctx context.Context) error {
	b.mu.Lock()
	closed := slices.Collect(maps.Keys(b.closed))
	var open []outbox.Breaker
	for _, br := range b.open {
		if br.unsaved {
			open = append(open, br.Breaker)
		}
	}
	b.mu.Unlock()
	for _, endpoint := range closed {
		if err := b.store.Close(ctx, endpoint); err != nil {
			return err
		}
		b.mu.Lock()
		delete(b.closed, endpoint)
		b.mu.Unlock()
	}
	for _, saved := range open {
		if err := b.store.Open(ctx, saved); err != nil {
			return err
		}
		b.mu.Lock()
		if br := b.open[saved.Endpoint]; br != nil && br.Breaker == saved { // not changed again
			br.unsaved = false
		}
		b.mu.Unlock()
	}
	return nil
}

// adopt opens and closes the breakers that other gateways opened and closed, and adopts the
// results of their probes. It closes no breaker if the store may have lost breakers.
func (b *breakers) adopt(listed []outbox.Breaker, lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	isListed := make(map[string]bool, len(listed))
	for _, l := range listed {
		isListed[l.Endpoint] = true
		br := b.open[l.Endpoint]
		switch {
		case br == nil && !b.closed[l.Endpoint]:
			b.open[l.Endpoint] = &openBreaker{Breaker: l}
		case br != nil && !br.unsaved && l.Probes > br.Probes:
			br.Breaker = l
		}
	}
	for endpoint, br := range b.open {
		if !isListed[endpoint] && !br.unsaved && !lost {
			delete(b.open, endpoint)
			b.log.Info("breaker closed: another gateway closed it, or Redis lost it", "account", br.Account, "relay", br.Relay, "endpoint", endpoint, "target", br.Target)
		}
	}
}

// idleAfter is the time for which a breaker without parked deliveries stays open after its probe
// is due. forgetAfter is the time after which the failures of an endpoint with a closed breaker
// are forgotten; it is longer than the pauses between the attempts of a delivery.
const (
	idleAfter   = time.Hour
	forgetAfter = 72 * time.Hour
)

// closeIdle closes breakers that have no parked deliveries and whose probe has been due for more
// than idleAfter, for example the breakers of removed endpoints. It drops the failures of
// endpoints that were not called again.
func (b *breakers) closeIdle(endpoints []outbox.ParkedEndpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	parked := make(map[string]bool, len(endpoints))
	for _, e := range endpoints {
		parked[e.Endpoint] = true
	}
	for endpoint, br := range b.open {
		if !parked[endpoint] && !br.probing && b.now().Sub(br.ProbeAt) > idleAfter {
			b.close(br)
		}
	}
	maps.DeleteFunc(b.failures, func(_ string, f failures) bool { return b.now().Sub(f.lastAt) > forgetAfter })
}

// count returns the number of open breakers, and how often breakers were opened and probed
// since the start.
func (b *breakers) count() (open int, opened, probed int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open), b.openedCount, b.probeCount
}
