package iot

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/tracing"
)

// Compiler returns a decoder for the name of a codec and its source. Package decoders/catalog
// implements it.
type Compiler func(codec, source string, useRawPayload bool) (decoders.Decoder, error)

// Options configures a Service. The zero value is valid.
type Options struct {
	// DedupWindow is the time for which duplicates of a frame are detected; 0 means two hours, more
	// than the longest series of retries of The Things Stack.
	DedupWindow time.Duration
	// MaxDevices is the largest number of devices that an account's frames may create; 0
	// means 100,000.
	MaxDevices int
	// MaxSeries is the largest number of sensors that an account's devices may have together;
	// 0 means 1,000,000.
	MaxSeries int
	Radio     RadioDetail // detail of the stored radio data; "" means RadioFull
	Now       func() time.Time
	NewID     func() string
	Logger    *slog.Logger // nil means slog.Default
	Evaluate  EvaluateFunc // evaluates rules; may be nil
}

// Service implements the operations on devices, decoders and readings.
type Service struct {
	store    *Store
	cache    Cache
	optional *optionalCache
	readings ReadingStore
	compile  Compiler
	options  Options
	records  *recordCache
	unmapped unmappedKeys
	// suspensions counts suspensions of programs since the start.
	suspensions atomic.Int64
}

// New returns a Service.
func New(store *Store, cache Cache, readings ReadingStore, compile Compiler, o Options) *Service {
	o.DedupWindow = cmp.Or(o.DedupWindow, 2*time.Hour)
	o.MaxDevices = cmp.Or(o.MaxDevices, 100_000)
	o.MaxSeries = cmp.Or(o.MaxSeries, 1_000_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return relay.NewID(o.Now()) }
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return &Service{
		store: store, cache: cache, optional: &optionalCache{now: o.Now, logger: o.Logger},
		readings: readings, compile: compile, options: o, unmapped: unmappedKeys{byDecoder: make(map[Ref]map[string]UnmappedKey)},
		records: &recordCache{accounts: make(map[relay.AccountID]*accountCache)},
	}
}

// EvaluateFunc evaluates the rules of an account for the frames of one batch, in the order of their
// arrival; relay/rule implements it. After an error or a crash, it is called again with the
// same frames.
type EvaluateFunc func(ctx context.Context, acct relay.AccountID, v Version, frames []StoredFrame) error

// Version changes when the records of an account change.
type Version struct {
	Records int64 // devices, sensors, decoders, locations and sensor types
	Rules   int64 // 0 means that the account never had a rule
}

// StoredFrame is an accepted frame that rules evaluate. A frame without readings, such as a join, has
// no Points.
type StoredFrame struct {
	RecordID string // the journal record that brought the frame
	// Device and Frame are shared and must not be modified.
	Device *Device
	Frame  *decoders.Frame
	Time   time.Time // the time of its readings
	Heard  time.Time // the time at which the network received the frame; not later than the gateway's receipt
	Points []Point
	Radio  *RadioData // nil if the frame has none
	Trace  tracing.Parent
}

// evaluateRules evaluates the rules of each account for the frames that seenByRules selects.
func (s *Service) evaluateRules(ctx context.Context, b *frameBatch) error {
	if s.options.Evaluate == nil {
		return nil
	}
	for acct, group := range b.groups {
		v := b.versions[acct]
		if v.Rules == 0 {
			continue
		}
		frames := make([]StoredFrame, 0, len(group))
		for _, w := range group {
			if w.seenByRules() {
				frames = append(frames, w.storedFrame())
			}
		}
		if len(frames) == 0 {
			continue
		}
		if wait := group[0].WaitForEarlier; wait != nil {
			if err := wait(ctx); err != nil {
				return err
			}
		}
		if err := s.options.Evaluate(ctx, acct, v, frames); err != nil {
			return fmt.Errorf("iot: evaluate rules: %w", err)
		}
	}
	return nil
}

func (w *workItem) seenByRules() bool {
	f := &w.Frame
	return !w.SkipRules && w.isAccepted() && w.device != nil && !w.outcome.Deferred && !f.Simulated &&
		(!f.Supplement || f.Kind == decoders.Uplink)
}

func (w *workItem) storedFrame() StoredFrame {
	return StoredFrame{
		RecordID: w.RecordID, Device: &w.device.Device, Frame: &w.Frame, Time: w.time, Heard: w.heardAt(),
		Points: w.outcome.Points, Radio: w.radio, Trace: w.Trace,
	}
}

// Version returns the current version of the records and rules of an account.
func (s *Service) Version(ctx context.Context, acct relay.AccountID) (Version, error) {
	versions, err := s.store.Versions(ctx, []relay.AccountID{acct})
	return versions[acct], err
}

// DevicesByID returns the devices with these ids by id, without LastSeen. It omits missing ones.
func (s *Service) DevicesByID(ctx context.Context, acct relay.AccountID, ids []string) (map[string]Device, error) {
	devices, err := s.store.DevicesByID(ctx, acct, ids)
	return db.IndexBy(devices, func(d Device) string { return d.ID }), err
}

// HeardLast returns the times of the last frames of devices, by id; zero for a device without
// frames. With verify, it reads the reading store even if the cache has the times, because the cache
// may lack a frame. It then returns relay.KindUnavailable if the reading store is unavailable.
func (s *Service) HeardLast(ctx context.Context, acct relay.AccountID, ids []string, verify bool) (map[string]time.Time, error) {
	heard, err := s.lastHeardTimes(ctx, acct, ids)
	if err != nil || !verify {
		return heard, err
	}
	now := s.options.Now()
	stored, err := s.readings.LastStored(ctx, acct, ids)
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "iot: last readings: %w", err)
	}
	for id, storedAt := range stored {
		if storedAt.After(now) { // samples may be ahead of the clock
			storedAt = now
		}
		if storedAt.After(heard[id]) {
			heard[id] = storedAt
		}
	}
	return heard, nil
}

// withLastSeen returns the device with LastSeen, or the error.
func (s *Service) withLastSeen(ctx context.Context, acct relay.AccountID, d Device, err error) (Device, error) {
	if err != nil {
		return d, err
	}
	heard, err := s.lastHeardTimes(ctx, acct, []string{d.ID})
	d.LastSeen = heard[d.ID]
	return d, err
}

// lastHeardTimes returns the times of the last frames of devices, by device ID: from the cache, or from the
// reading store if the cache has no fresh time. While the reading store is unavailable, it returns
// cached times of any age.
func (s *Service) lastHeardTimes(ctx context.Context, acct relay.AccountID, ids []string) (map[string]time.Time, error) {
	asOf := s.options.Now()
	var cached map[string]LastHeard
	if _, err := s.optional.call(ctx, func() (err error) {
		cached, err = s.cache.Heard(ctx, acct, ids)
		return err
	}); err != nil {
		return nil, err
	}
	heardAt := make(map[string]time.Time, len(ids))
	var missing []string
	for _, id := range ids {
		heardAt[id] = cached[id].HeardAt
		if !s.optional.isFresh(cached[id].FilledAt, heardMaxAge) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return heardAt, nil
	}
	stored, err := s.readings.LastStored(ctx, acct, missing)
	if err != nil {
		s.optional.logger.WarnContext(ctx, "reading store unavailable; the last contact of devices may be outdated", "account", acct, "error", err)
		return heardAt, ctx.Err()
	}
	filledTimes := make(map[string]time.Time, len(missing))
	for _, id := range missing {
		filledTimes[id] = stored[id]
		if filledTimes[id].After(asOf) { // samples may have times in the future
			filledTimes[id] = asOf
		}
		if filledTimes[id].After(heardAt[id]) {
			heardAt[id] = filledTimes[id]
		}
	}
	_, err = s.optional.call(ctx, func() error { return s.cache.FillHeard(ctx, acct, filledTimes, asOf) })
	return heardAt, err
}
