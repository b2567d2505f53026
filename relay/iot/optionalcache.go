package iot

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
)

// How long cached values are valid after they were read from the reading store. Redis
// loses acknowledged writes in a failover, or restarts from an old snapshot, and
// reports neither; so this is how long a value may be outdated then.
const (
	latestFresh = time.Minute
	heardFresh  = time.Hour
)

// latestKept is how old cached values may be while the reading store is down.
const latestKept = 24 * time.Hour

// cachePause is how long the cache is not called after a failure, so that neither
// frames nor answers wait for a server that does not answer.
const cachePause = 5 * time.Second

// optionalCache calls the cache and goes on without it: its errors are logged.
//
// Frames are processed while the cache is down: a duplicate is stored over
// itself. The cache misses changes then, so that this gateway reads everything
// filled before the last missed change from the reading store again; other
// gateways do so when latestFresh and heardFresh are over.
type optionalCache struct {
	cache Cache
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex
	retryAt time.Time // no calls before
	missed  time.Time // when the last change failed
}

// call makes a call to the cache and reports whether it succeeded. The only error
// is that of the context.
func (c *optionalCache) call(ctx context.Context, do func() error) (bool, error) {
	if c.pausing() {
		return false, nil
	}
	err := do()
	if err == nil || ctx.Err() != nil {
		return err == nil, ctx.Err()
	}
	c.pause(ctx, err)
	return false, nil
}

// change makes a call whose failure leaves outdated values in the cache.
func (c *optionalCache) change(ctx context.Context, do func() error) error {
	ok, err := c.call(ctx, do)
	if !ok {
		c.mu.Lock()
		c.missed = c.now()
		c.mu.Unlock()
	}
	return err
}

func (c *optionalCache) pausing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().Before(c.retryAt)
}

func (c *optionalCache) pause(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Before(c.retryAt) {
		return // another call failed at the same time
	}
	c.retryAt = now.Add(cachePause)
	c.log.WarnContext(ctx, "cache unavailable; frames and readings are processed without it", "error", err)
}

// fresh reports whether values filled at a time are still valid.
func (c *optionalCache) fresh(filled time.Time, most time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return filled.After(c.missed) && c.now().Sub(filled) < most
}

// claim is Cache.Claim; without a cache all frames are new.
func (c *optionalCache) claim(ctx context.Context, frames []Seen, ttl time.Duration) (first []string, err error) {
	ok, err := c.call(ctx, func() (err error) {
		first, err = c.cache.Claim(ctx, frames, ttl)
		return err
	})
	if ok || err != nil {
		return first, err
	}
	first = make([]string, len(frames))
	for i := range frames {
		first[i] = frames[i].Record
	}
	return first, nil
}

// mergeParts is Cache.MergeParts; without a cache it returns nothing.
func (c *optionalCache) mergeParts(ctx context.Context, acct relay.AccountID, parts []FramePart, ttl time.Duration) (merged []MergedFrame, err error) {
	ok, err := c.call(ctx, func() (err error) {
		merged, err = c.cache.MergeParts(ctx, acct, parts, ttl)
		return err
	})
	if !ok {
		merged = nil
	}
	return merged, err
}

// latest returns the newest point of each of a device's sensors from the cache,
// or else from the reading store, and fills the cache. Points from the cache have
// no key.
func (s *Service) latest(ctx context.Context, acct relay.AccountID, deviceID string, sensors []Sensor) ([]Point, error) {
	if len(sensors) == 0 {
		return nil, nil
	}
	asOf := s.options.Now()
	var points []Point
	var filled time.Time
	ok, err := s.safeCache.call(ctx, func() (err error) {
		points, filled, err = s.cache.Latest(ctx, acct, deviceID)
		return err
	})
	if err != nil || ok && s.safeCache.fresh(filled, latestFresh) {
		return points, err
	}
	stored, err := s.readings.Latest(ctx, acct, deviceID, typesOf(sensors))
	if err != nil {
		if ok && s.safeCache.fresh(filled, latestKept) {
			return points, nil
		}
		return nil, relay.Errorf(relay.KindUnavailable, "iot: device %s: latest values: %w", deviceID, err)
	}
	stored = newestOf(stored, sensors)
	_, err = s.safeCache.call(ctx, func() error { return s.cache.FillLatest(ctx, acct, deviceID, stored, asOf) })
	return stored, err
}

// newestOf leaves one point of each sensor. Of points of one time, the one of the
// sensor's present type counts.
func newestOf(points []Point, sensors []Sensor) []Point {
	types := make(map[string]string, len(sensors))
	for _, sensor := range sensors {
		types[sensor.ID] = sensor.SensorTypeID
	}
	former := func(p Point) int {
		if p.Type == types[p.SensorID] {
			return 0
		}
		return 1
	}
	slices.SortFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.SensorID, b.SensorID), b.Time.Compare(a.Time), former(a)-former(b))
	})
	return slices.CompactFunc(points, func(a, b Point) bool { return a.SensorID == b.SensorID })
}

// heardLast returns when devices were heard last, by device id: from the cache,
// and for the devices missing there from the reading store. If the reading store
// is down, cached times of any age count: lists of devices work without readings.
func (s *Service) heardLast(ctx context.Context, acct relay.AccountID, ids []string) (map[string]time.Time, error) {
	asOf := s.options.Now()
	var known map[string]Heard
	if _, err := s.safeCache.call(ctx, func() (err error) {
		known, err = s.cache.Heard(ctx, acct, ids)
		return err
	}); err != nil {
		return nil, err
	}
	out := make(map[string]time.Time, len(ids))
	var missing []string
	for _, id := range ids {
		out[id] = known[id].At
		if !s.safeCache.fresh(known[id].Filled, heardFresh) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	stored, err := s.readings.LastStored(ctx, acct, missing)
	if err != nil {
		s.safeCache.log.WarnContext(ctx, "reading store unavailable; devices may show an older last contact", "account", acct, "error", err)
		return out, ctx.Err()
	}
	fill := make(map[string]time.Time, len(missing))
	for _, id := range missing {
		fill[id] = stored[id]
		if fill[id].After(asOf) { // samples may be ahead of the clock
			fill[id] = asOf
		}
		if fill[id].After(out[id]) {
			out[id] = fill[id]
		}
	}
	_, err = s.safeCache.call(ctx, func() error { return s.cache.FillHeard(ctx, acct, fill, asOf) })
	return out, err
}
