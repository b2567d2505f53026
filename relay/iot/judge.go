package iot

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
)

// Judge decides what follows from frames that were stored; relay/rule implements it.
type Judge interface {
	// Judge takes the frames of one account and one batch, in the order of their
	// arrival. The same frames come again after a crash. An error means that the
	// whole batch is processed again.
	Judge(ctx context.Context, acct account.ID, v Version, frames []Stored) error
}

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
	Uplink *RadioData // its radio data; nil if it has none
}

// JudgeWith has stored frames judged; it must be called before the first Ingest.
func (s *Service) JudgeWith(j Judge) { s.judge = j }

// judgeStored passes on the frames that were stored and not judged before: no
// duplicates, no supplements, no simulated frames and none that wait for decoding.
func (s *Service) judgeStored(ctx context.Context, b *batch) error {
	if s.judge == nil {
		return nil
	}
	for acct, group := range b.groups {
		v := b.versions[acct]
		if v.Rules == 0 {
			continue
		}
		frames := make([]Stored, 0, len(group))
		for _, w := range group {
			if w.judged() {
				frames = append(frames, w.stored())
			}
		}
		if len(frames) == 0 {
			continue
		}
		if err := earlier(ctx, group); err != nil {
			return err
		}
		if err := s.judge.Judge(ctx, acct, v, frames); err != nil {
			return fmt.Errorf("iot: judge by rules: %w", err)
		}
	}
	return nil
}

// earlier waits until the frames that were received before are judged.
func earlier(ctx context.Context, group []*work) error {
	if wait := group[0].Earlier; wait != nil {
		return wait(ctx)
	}
	return nil
}

// judged reports whether rules look at a frame.
func (w *work) judged() bool {
	f := &w.Frame
	return !w.NoRules && w.open() && w.device != nil && !w.out.Deferred && !f.Simulated &&
		(!f.Supplement || f.Kind == decoders.Uplink)
}

func (w *work) stored() Stored {
	return Stored{
		Record: w.Record, Device: &w.device.Device, Frame: &w.Frame, Time: w.at, Heard: w.heard(),
		Points: w.out.Points, Uplink: w.uplink,
	}
}
