package iot

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// Evaluate evaluates the rules of an account for the frames of one batch, in the order of their
// arrival; relay/rule implements it. The same frames come again after a crash. An error means
// that the whole batch is processed again.
type Evaluate func(ctx context.Context, acct relay.AccountID, v Version, frames []Stored) error

// Version changes with the records that a cache is made of.
type Version struct {
	Records int64 // devices, sensors, decoders, locations and sensor types
	Rules   int64 // 0: the account never had a rule
}

// Stored is a frame that was stored.
type Stored struct {
	Record string // the journal record that brought it
	// Device and Frame are shared and must not be modified.
	Device *Device
	Frame  *decoders.Frame
	Time   time.Time // of its readings
	Heard  time.Time // when the network heard the device, never later than the receipt
	Points []Point
	Radio  *RadioData // nil if it has none
	Trace  tracing.Parent
}

// evaluateRules passes on the frames that were stored and not evaluated before: no
// duplicates, no supplements, no simulated frames and none that wait for decoding.
func (s *Service) evaluateRules(ctx context.Context, b *batch) error {
	if s.options.Evaluate == nil {
		return nil
	}
	for acct, group := range b.groups {
		v := b.versions[acct]
		if v.Rules == 0 {
			continue
		}
		frames := make([]Stored, 0, len(group))
		for _, w := range group {
			if w.seenByRules() {
				frames = append(frames, w.stored())
			}
		}
		if len(frames) == 0 {
			continue
		}
		if wait := group[0].WaitForEarlier; wait != nil { // rules look at frames in their order
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

// seenByRules reports whether rules look at a frame.
func (w *work) seenByRules() bool {
	f := &w.Frame
	return !w.NoRules && w.open() && w.device != nil && !w.outcome.Deferred && !f.Simulated &&
		(!f.Supplement || f.Kind == decoders.Uplink)
}

func (w *work) stored() Stored {
	return Stored{
		Record: w.Record, Device: &w.device.Device, Frame: &w.Frame, Time: w.time, Heard: w.heard(),
		Points: w.outcome.Points, Radio: w.radio, Trace: w.Trace,
	}
}
