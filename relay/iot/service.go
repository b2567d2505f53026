package iot

import (
	"cmp"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Compiler makes a decoder of its codec's name and source; decoders/catalog
// has the one that is used.
type Compiler func(codec, source string, useRawPayload bool) (decoders.Decoder, error)

// Options are what may be chosen; the zero value works.
type Options struct {
	// DedupWindow is how long a frame is known as seen; 0 means two hours, more
	// than The Things Stack's longest series of retries.
	DedupWindow time.Duration
	// MaxDevices is how many devices an account's frames may create; 0 means
	// 100,000.
	MaxDevices int
	// MaxSeries is how many sensors an account's devices may have together; 0
	// means 1,000,000.
	MaxSeries int
	Now       func() time.Time
	NewID     func() string
	Logger    *slog.Logger // nil means slog.Default
}

// Service has the use cases of devices, decoders and readings.
type Service struct {
	store    Store
	cache    Cache
	cached   *cached
	readings ReadingStore
	compile  Compiler
	options  Options
	memory   *memory
	types    atomic.Pointer[sensorTypes]
	guesses  guesses
}

// New returns a Service.
func New(store Store, cache Cache, readings ReadingStore, compile Compiler, o Options) *Service {
	o.DedupWindow = cmp.Or(o.DedupWindow, 2*time.Hour)
	o.MaxDevices = cmp.Or(o.MaxDevices, 100_000)
	o.MaxSeries = cmp.Or(o.MaxSeries, 1_000_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		now := o.Now
		o.NewID = func() string { return relay.NewID(now()) }
	}
	return &Service{
		store: store, cache: cache, cached: &cached{cache: cache, now: o.Now, log: cmp.Or(o.Logger, slog.Default())},
		readings: readings, compile: compile, options: o, memory: newMemory(),
	}
}
