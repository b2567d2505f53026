package iot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
)

// latestMaxAge and heardMaxAge are the times for which cached values are valid after they were read from
// the reading store. In a failover or a restart from an old snapshot, Redis loses acknowledged writes
// without an error, so that values may be outdated for these times.
const (
	latestMaxAge = time.Minute
	heardMaxAge  = time.Hour
)

// latestFallbackAge is the largest age of cached values that are used while the reading store is down.
const latestFallbackAge = 24 * time.Hour

// cachePause is the time for which the cache is not called after a failure, so that frames and
// requests do not wait for the timeout of each call.
const cachePause = 5 * time.Second

// optionalCache calls the cache. It logs errors instead of returning them. Without the cache, frames
// are processed and duplicates overwrite themselves.
//
// A cache that missed changes has outdated values. This gateway does not use values that were filled
// before the last missed change. Other gateways may use such values for latestMaxAge or heardMaxAge.
type optionalCache struct {
	now    func() time.Time
	logger *slog.Logger

	mu       sync.Mutex
	retryAt  time.Time // the cache is not called before this time
	missedAt time.Time // time of the last failed change
}

// call calls do, which calls the cache, and reports whether do succeeded. It returns only the error of
// the context.
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
	if now := c.now(); !now.Before(c.retryAt) { // otherwise a concurrent call has also failed
		c.retryAt = now.Add(cachePause)
		c.logger.WarnContext(ctx, "cache unavailable; frames and readings are processed without it", "error", err)
	}
	return false, nil
}

// change calls do like call. do changes cached values. A failure is recorded, because it leaves
// outdated values.
func (c *optionalCache) change(ctx context.Context, do func() error) error {
	ok, err := c.call(ctx, do)
	if !ok {
		c.mu.Lock()
		c.missedAt = c.now()
		c.mu.Unlock()
	}
	return err
}

// isFresh reports whether values that were filled at a time are still valid.
func (c *optionalCache) isFresh(filled time.Time, maxAge time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return filled.After(c.missedAt) && c.now().Sub(filled) < maxAge
}

// Cache stores data that may be lost without harm: lost values are read from the reading store again,
// and repeated frames overwrite themselves. It may be emptied at any time.
type Cache interface {
	// Deduplicate stores the records of frames for the time ttl. It returns for each frame the record
	// that was stored first, which is the frame's own record if the frame is new. It replaces the
	// record of another frame with the same key, see FrameKey.SameFrame.
	Deduplicate(ctx context.Context, frames []FrameKey, ttl time.Duration) ([]string, error)
	// FirstRecords returns for each frame the record that was stored first, or an empty string. It
	// stores nothing.
	FirstRecords(ctx context.Context, frames []FrameKey, ttl time.Duration) ([]string, error)

	// MergePosts merges each post atomically with the stored posts about the same frame and returns the
	// merged frames. Of two receptions by one gateway it uses the stronger one, of two positions the
	// later one. Posts are stored for the time ttl. Merging a post again changes nothing.
	MergePosts(ctx context.Context, acct relay.AccountID, posts []FramePost, ttl time.Duration) ([]MergedFrame, error)

	// SetHeard stores the times of the last frames of devices, by account and device ID. It ignores
	// times that are earlier than the stored ones.
	SetHeard(ctx context.Context, heard map[relay.AccountID]map[string]time.Time) error
	// FillHeard stores times like SetHeard, for devices of an account. The times were read from the
	// reading store at asOf. The zero time means that the device has sent no frame.
	FillHeard(ctx context.Context, acct relay.AccountID, heard map[string]time.Time, asOf time.Time) error
	// Heard returns the times of the last frames of devices, by device ID. It omits devices that are
	// not in the cache.
	Heard(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]LastHeard, error)

	// SetLatest stores points, except points older than the cached point of the sensor.
	SetLatest(ctx context.Context, points []Point) error
	// FillLatest stores points like SetLatest: the newest points of a device, read from the reading
	// store at asOf.
	FillLatest(ctx context.Context, acct relay.AccountID, deviceID string, points []Point, asOf time.Time) error
	// Latest returns the newest cached point of each sensor of a device, in order of sensor ID, without
	// key and identifier. filled is the time asOf of the last FillLatest, or zero. The cache has all
	// points that were stored until then.
	Latest(ctx context.Context, acct relay.AccountID, deviceID string) (points []Point, filled time.Time, err error)

	// ForgetDevice deletes the cached data of a device.
	ForgetDevice(ctx context.Context, acct relay.AccountID, deviceID string) error
}

// LastHeard has the time of a device's last frame, or zero, and the time asOf of its last
// FillHeard.
type LastHeard struct {
	HeardAt, FilledAt time.Time
}

// FrameKey identifies a frame for the duplicate check by its device, its deduplication key, and its
// journal record.
type FrameKey struct {
	Account  relay.AccountID
	Device   string
	Dedup    string
	RecordID string
	Span     time.Duration // decoders.Frame.DedupSpan
	Time     time.Time     // time of the frame; zero without a Span
}

// SameFrame reports whether a frame with the same key at the time t is the same frame.
func (s FrameKey) SameFrame(t time.Time) bool { return s.Span == 0 || s.Time.Sub(t).Abs() <= s.Span }
