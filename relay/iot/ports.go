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

// Store keeps devices, sensors, decoders, event markers and raw frames.
// Everything is looked up through its account; another account's record is not
// found.
type Store interface {
	CreateDecoder(ctx context.Context, acct relay.AccountID, d Decoder) error
	// ChangeDecoder saves a decoder as modified by change. After a concurrent update,
	// change is called again with the updated decoder. It returns
	// relay.KindNotFound if there is no such decoder, and the error of change.
	// ChangeDevice and ChangeSensor likewise.
	ChangeDecoder(ctx context.Context, acct relay.AccountID, id string, change func(*Decoder) error) (Decoder, error)
	Decoder(ctx context.Context, acct relay.AccountID, id string) (Decoder, error)
	Decoders(ctx context.Context, acct relay.AccountID) ([]Decoder, error)

	// AddUnmapped adds the counts of unmapped keys to those of existing decoders, at most
	// about MaxUnmappedKeys of each, and deletes those of these decoders that were last
	// seen before a time. Unmapped lists those of a decoder, the last seen first.
	AddUnmapped(ctx context.Context, keys map[Ref]map[string]UnmappedKey, before time.Time) error
	Unmapped(ctx context.Context, acct relay.AccountID, decoderID string) ([]UnmappedKey, error)

	// CreateDevice saves a device and its sensors. It returns relay.KindConflict
	// if the identifier is taken in this account or claimed by another.
	CreateDevice(ctx context.Context, acct relay.AccountID, d Device, sensors []Sensor) error
	// CreateDevices saves all of them, or none and returns the same error.
	CreateDevices(ctx context.Context, acct relay.AccountID, all []Known) error
	ChangeDevice(ctx context.Context, acct relay.AccountID, id string, change func(*Device) error) (Device, error)
	// DeleteDevice deletes a device with all its records and releases its
	// identifier. Batches in flight do not restore it.
	DeleteDevice(ctx context.Context, acct relay.AccountID, id string) error
	// Claims returns up to limit claims whose identifier begins with prefix and comes
	// after another one, by identifier.
	Claims(ctx context.Context, prefix, after string, limit int) ([]Claim, error)
	// ReleaseClaim deletes a claim and returns it; its device stays. It returns
	// relay.KindNotFound if there is none.
	ReleaseClaim(ctx context.Context, identifier string) (Claim, error)
	Device(ctx context.Context, acct relay.AccountID, id string) (Device, error)
	DeviceByIdentifier(ctx context.Context, acct relay.AccountID, identifier string) (Device, error)
	// Load returns the devices that are there among the identifiers, with their
	// sensors, in one round trip.
	Load(ctx context.Context, acct relay.AccountID, identifiers []string) (map[string]Known, error)
	Devices(ctx context.Context, acct relay.AccountID) ([]Device, error)
	CountDevices(ctx context.Context, acct relay.AccountID) (int, error)
	// DevicesByID returns those of the devices that are there, in any order.
	DevicesByID(ctx context.Context, acct relay.AccountID, ids []string) ([]Device, error)

	// ScanDevices returns up to limit devices of an account, 0 for all accounts, that
	// come after one in the order of account and id; alarmed: those with a raised
	// alarm.
	ScanDevices(ctx context.Context, acct relay.AccountID, after Ref, alarmed bool, limit int) ([]FoundDevice, error)
	// ScanDecoders returns up to limit decoders of an account, 0 for all accounts,
	// that come after one in the order of account and id.
	ScanDecoders(ctx context.Context, acct relay.AccountID, after Ref, limit int) ([]FoundDecoder, error)
	// RaisedAlarms counts the raised alarms of devices, without those that have none.
	RaisedAlarms(ctx context.Context, devices []Ref) (map[Ref]int, error)

	// Retire saves sensors of a device that is about to be deleted; Retired lists
	// those of an account, and Unretire deletes them by sensor id.
	Retire(ctx context.Context, acct relay.AccountID, sensors []Retired) error
	Retired(ctx context.Context, acct relay.AccountID) ([]Retired, error)
	Unretire(ctx context.Context, acct relay.AccountID, sensorIDs []string) error

	// AddSensors saves sensors of a device; one whose key is there already is
	// left as it is. It returns relay.KindNotFound if there is no such device.
	AddSensors(ctx context.Context, acct relay.AccountID, deviceID string, sensors []Sensor) error
	ChangeSensor(ctx context.Context, acct relay.AccountID, deviceID, key string, change func(*Sensor) error) (Sensor, error)
	Sensors(ctx context.Context, acct relay.AccountID, deviceID string) ([]Sensor, error)
	// RetypeSensors gives sensors of a device another type, by key, and keeps
	// the one they had among Former. Keys without a sensor are left out.
	RetypeSensors(ctx context.Context, acct relay.AccountID, deviceID string, types map[string]string) error
	// CountSensors counts the sensors of all of an account's devices.
	CountSensors(ctx context.Context, acct relay.AccountID) (int, error)

	SensorTypes(ctx context.Context) (map[string]SensorType, error)
	Locations(ctx context.Context, acct relay.AccountID) ([]Location, error)

	// Versions changes whenever a decoder, device, sensor, location, sensor type or
	// rule that the account sees changes: cached records are stale then.
	Versions(ctx context.Context, accts []relay.AccountID) (map[relay.AccountID]Version, error)

	// Overview returns a device's sensors and the version of the sensor types, in
	// one round trip. It returns relay.KindNotFound if there is no such device.
	Overview(ctx context.Context, acct relay.AccountID, deviceID string) (Overview, error)

	// PutMarker saves an event marker of a device and returns the saved one.
	// One of that id gets the new comment, and the new time unless CreatedAt is
	// zero; created says that there was none, and that it got the time now. It
	// returns relay.KindNotFound if there is no such device, and
	// relay.KindInvalid if the device has as many markers as it may.
	PutMarker(ctx context.Context, acct relay.AccountID, deviceID string, m Marker, now time.Time) (out Marker, created bool, err error)
	// Markers lists a device's event markers, newest first.
	Markers(ctx context.Context, acct relay.AccountID, deviceID string) ([]Marker, error)

	// KeepFrames keeps raw frames of devices, except of those that were deleted
	// meanwhile: of each device the newest MaxFrames, for FrameRetention. A frame
	// whose id is there already is replaced.
	KeepFrames(ctx context.Context, acct relay.AccountID, frames []RawFrame) error
	// Frames lists the raw frames kept of a device that were received since a
	// time, newest first.
	Frames(ctx context.Context, acct relay.AccountID, deviceID string, since time.Time) ([]RawFrame, error)
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
