package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// ReadingStore keeps readings: InfluxDB, or SQLite in the data directory. Both
// pass the same suite, package iottest.
type ReadingStore interface {
	// Write stores a batch. It returns the points that the store refuses
	// individually; the others are stored. After an error the whole batch may be
	// written again.
	Write(ctx context.Context, b Batch) ([]Refused, error)

	// Readings returns a device's points, newest first; at the same time in
	// order of sensor id.
	Readings(ctx context.Context, q Query) ([]Point, error)

	// Aggregate returns the non-empty buckets of a device's numbers, computed by
	// the store: oldest first, at the same time in order of sensor id and type.
	Aggregate(ctx context.Context, q AggregateQuery) ([]Bucket, error)

	// Forget deletes the points of sensors, numbers and texts of any type, that
	// are older than each one's time, in steps between which others may write.
	// Points that are already deleted are no error.
	Forget(ctx context.Context, acct relay.AccountID, old []Expired) error

	// Latest returns the newest point of each of a device's sensors, in order of
	// sensor id. Where a sensor has points of several types at that time, all of
	// them may come. types are those that the device's points may have.
	Latest(ctx context.Context, acct relay.AccountID, deviceID string, types []string) ([]Point, error)

	// LastStored returns the time of each device's newest point or uplink, by
	// device id, without devices that have none.
	LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error)

	// Radio returns the newest radio data of each device since a time, by device id,
	// without devices that have none: of the last RadioFrames, each value that the
	// newest lacks comes from an earlier one (RadioData.Complete).
	Radio(ctx context.Context, acct relay.AccountID, deviceIDs []string, since time.Time) (map[string]RadioData, error)

	// Ping reports whether the store can be written to, and why not.
	Ping(ctx context.Context) error
}

// Cache holds data whose loss is harmless: it is read again from the reading store, or
// a repeated frame is stored over itself. It may be emptied at any time, and does not
// know which devices exist.
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
	SetHeard(ctx context.Context, at map[relay.AccountID]map[string]time.Time) error
	// FillHeard does the same for an account with times read from the reading store at
	// asOf. The zero time is that of a device that has never been heard.
	FillHeard(ctx context.Context, acct relay.AccountID, at map[string]time.Time, asOf time.Time) error
	// Heard returns when devices were heard last, by device id, without those
	// that the cache does not know.
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

// Heard is when a device was heard last, zero for never, and when the reading
// store was last asked about it.
type Heard struct {
	At, Filled time.Time
}

// Known is a device with its sensors.
type Known struct {
	Device  Device
	Sensors []Sensor
}

// Overview is the part of a device's records that all queries of readings need.
type Overview struct {
	Sensors []Sensor
	// TypesVersion changes whenever a sensor type does.
	TypesVersion int64
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
func (s Seen) Near(at time.Time) bool { return s.Span == 0 || s.At.Sub(at).Abs() <= s.Span }
