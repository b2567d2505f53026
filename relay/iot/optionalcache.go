package iot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
)

// How long cached values are valid after they were read from the reading store. Redis loses
// acknowledged writes in a failover, or restarts from an old snapshot, and reports neither;
// so a value may be outdated for this time then.
const (
	latestFresh = time.Minute
	heardFresh  = time.Hour
)

// latestKept is the largest age of cached values while the reading store is down.
const latestKept = 24 * time.Hour

// cachePause is the time for which the cache is not called after a failure, so that neither
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
	c.mu.Lock()
	pausing := c.now().Before(c.retryAt)
	c.mu.Unlock()
	if pausing {
		return false, nil
	}
	err := do()
	if err == nil || ctx.Err() != nil {
		return err == nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); !now.Before(c.retryAt) { // else another call failed at the same time
		c.retryAt = now.Add(cachePause)
		c.log.WarnContext(ctx, "cache unavailable; frames and readings are processed without it", "error", err)
	}
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

// fresh reports whether values filled at a time are still valid.
func (c *optionalCache) fresh(filled time.Time, maxAge time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return filled.After(c.missed) && c.now().Sub(filled) < maxAge
}

// Cache holds data whose loss is harmless: it is read again from the reading store, or a
// repeated frame is stored over itself. It may be emptied at any time, and does not have the
// existing devices.
type Cache interface {
	// Claim claims frames for the given time. It returns for each the
	// record that claimed it first: the frame's own record if it is new. A claim
	// whose time is not Near is replaced.
	Claim(ctx context.Context, frames []Seen, ttl time.Duration) ([]string, error)
	// Claimed returns for each frame the record that claimed it, empty for none,
	// and claims nothing.
	Claimed(ctx context.Context, frames []Seen, ttl time.Duration) ([]string, error)

	// MergeParts merges parts of frames with those of earlier posts, each
	// atomically, and returns the merged frames: of two receptions by one gateway
	// the stronger, of two positions the later. Parts are kept for the given time.
	// The same part again changes nothing.
	MergeParts(ctx context.Context, acct relay.AccountID, parts []FramePart, ttl time.Duration) ([]MergedFrame, error)

	// SetHeard keeps when devices of accounts were heard last, by device id; an
	// earlier time changes nothing.
	SetHeard(ctx context.Context, heard map[relay.AccountID]map[string]time.Time) error
	// FillHeard does the same for an account with times read from the reading store at
	// asOf. The zero time is that of a device that has never been heard.
	FillHeard(ctx context.Context, acct relay.AccountID, heard map[string]time.Time, asOf time.Time) error
	// Heard returns when devices were heard last, by device id, without those that the cache
	// does not have.
	Heard(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]Heard, error)

	// SetLatest keeps those points that are not older than the cached ones.
	SetLatest(ctx context.Context, points []Point) error
	// FillLatest adds the newest points of a device, as read from the reading
	// store at asOf; a cached point that is newer stays.
	FillLatest(ctx context.Context, acct relay.AccountID, deviceID string, points []Point, asOf time.Time) error
	// Latest returns a device's newest cached point per sensor, in order of sensor
	// id, without key and identifier. They are complete as of the time filled; a
	// device that was never filled has the zero time.
	Latest(ctx context.Context, acct relay.AccountID, deviceID string) (points []Point, filled time.Time, err error)

	// ForgetDevice deletes the cached data of a device.
	ForgetDevice(ctx context.Context, acct relay.AccountID, deviceID string) error
}

// Heard is the time of a device's last frame, zero for none, and of the last query of the
// reading store about it.
type Heard struct {
	At, Filled time.Time
}

// Seen identifies a frame for the duplicate check: its device, its deduplication
// key, and the journal record that brought it.
type Seen struct {
	Account relay.AccountID
	Device  string
	Dedup   string
	Record  string
	// Span is decoders.Frame's DedupSpan; if there is one, At is the frame's time.
	Span time.Duration
	At   time.Time
}

// Near reports whether a frame with the same key and the given time is the same
// frame.
func (s Seen) Near(t time.Time) bool { return s.Span == 0 || s.At.Sub(t).Abs() <= s.Span }
