package iot

import (
	"cmp"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Compiler builds a decoder from the name of its codec and its source;
// decoders/catalog implements it.
type Compiler func(codec, source string, useRawPayload bool) (decoders.Decoder, error)

// Options configures a Service; the zero value works.
type Options struct {
	// DedupWindow is how long duplicates of a frame are detected; 0 means two
	// hours, more than The Things Stack's longest series of retries.
	DedupWindow time.Duration
	// MaxDevices is how many devices an account's frames may create; 0 means
	// 100,000.
	MaxDevices int
	// MaxSeries is how many sensors an account's devices may have together; 0
	// means 1,000,000.
	MaxSeries int
	// Radio says how much radio data is stored; "" means all.
	Radio  RadioDetail
	Now    func() time.Time
	NewID  func() string
	Logger *slog.Logger // nil means slog.Default
	// Evaluate evaluates rules; nil: none are evaluated.
	Evaluate Evaluate
}

// Service implements the use cases of devices, decoders and readings.
type Service struct {
	store     *Store
	cache     Cache
	safeCache *optionalCache
	readings  ReadingStore
	compile   Compiler
	options   Options
	accounts  *recordCache
	types     atomic.Pointer[sensorTypes]
	// sensorTypesOf is used to prefetch readings.
	sensorTypesOf typeCache
	// suspensions counts suspended programs since the start.
	suspensions atomic.Int64
	unmapped    unmappedKeys
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
		store: store, cache: cache, safeCache: &optionalCache{cache: cache, now: o.Now, log: o.Logger},
		readings: readings, compile: compile, options: o, accounts: newRecordCache(),
	}
}
