package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// radioDataOf returns the radio data of a frame, or nil: all data of an uplink or a status, and the
// position of a location.
func radioDataOf(w *workItem) *RadioData {
	f := &w.Frame
	switch {
	case f.Supplement && f.Kind != decoders.Uplink:
		return w.supplement()
	case f.Kind == decoders.Location:
		u := w.newRadioData(w.time)
		u.setPosition(f.Position)
		return u.orNil()
	case f.Kind != decoders.Uplink && f.Kind != decoders.Status:
		return nil
	}
	u := w.newRadioData(w.time)
	u.Battery, u.Margin = f.Battery, f.Margin
	if f.Kind == decoders.Uplink {
		u.Frame, u.Name = true, w.device.Device.Name
	}
	if f.HasFCnt {
		u.FCnt = new(f.FCnt)
	}
	if f.HasFPort {
		u.FPort = new(int64(f.FPort))
	}
	gateways, position := f.Gateways, f.Position
	if w.merged != nil {
		gateways, position = w.merged.receptions(), w.merged.Position
	}
	u.setReceptions(gateways)
	u.setPosition(position)
	return u.orNil()
}

func (w *workItem) newRadioData(t time.Time) *RadioData {
	return &RadioData{Account: w.Account, DeviceID: w.device.Device.ID, Identifier: w.device.Device.Identifier, Time: t}
}

// setReceptions sets the number of gateways that received the frame, and the RSSI and SNR of the best
// gateway.
func (u *RadioData) setReceptions(gateways []decoders.Gateway) {
	if n := len(gateways); n > 0 {
		u.Gateways = new(int64(n))
	}
	f := decoders.Frame{Gateways: gateways}
	if best, ok := f.BestGateway(); ok {
		u.RSSI, u.SNR = best.RSSI, best.SNR
	}
}

func (u *RadioData) setPosition(p *decoders.Position) {
	if p != nil {
		u.Latitude, u.Longitude = new(p.Latitude), new(p.Longitude)
	}
}

// orNil returns u, or nil if u is not an uplink and has no data except a port.
func (u *RadioData) orNil() *RadioData {
	if !u.Frame && u.FCnt == nil && u.Battery == nil && u.Margin == nil && u.Gateways == nil && u.Latitude == nil {
		return nil
	}
	return u
}

// heardAt returns the network server's time of receipt if it is plausible and not later than
// ReceivedAt, else ReceivedAt.
func (w *workItem) heardAt() time.Time {
	networkTime := w.Frame.NetworkTime
	if !Plausible(networkTime, w.ReceivedAt) || networkTime.After(w.ReceivedAt) {
		networkTime = w.ReceivedAt
	}
	return networkTime.UTC()
}

// lastHeard returns the times of the last frames of a batch's devices, by account and device ID.
func lastHeard(b *batch) map[relay.AccountID]map[string]time.Time {
	heardByAccount := make(map[relay.AccountID]map[string]time.Time)
	for acct, group := range b.groups {
		heard := make(map[string]time.Time)
		for _, w := range group {
			if w.device == nil || w.outcome.Duplicate || w.Frame.Simulated || !FromDevice(w.Frame.Kind) {
				continue
			}
			if id, t := w.device.Device.ID, w.heardAt(); t.After(heard[id]) {
				heard[id] = t
			}
		}
		if len(heard) > 0 {
			heardByAccount[acct] = heard
		}
	}
	return heardByAccount
}

// FromDevice reports whether the device itself sends frames of this kind.
func FromDevice(k decoders.FrameKind) bool { return createsDevice(k) || k == decoders.Ack }

// RadioDetail returns the detail of the stored radio data.
func (s *Service) RadioDetail() RadioDetail { return s.options.Radio }

// Radio returns battery, signal and position from the last frames of devices, by device ID. It omits
// devices without radio data in the last year. It returns relay.KindUnavailable if the reading store
// is unavailable.
func (s *Service) Radio(ctx context.Context, acct relay.AccountID, ids []string) (map[string]RadioData, error) {
	radio, err := s.readings.Radio(ctx, acct, ids, s.options.Now().Add(-radioWindow))
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "iot: radio data: %w", err)
	}
	return radio, nil
}

// Radio data is read from the last RadioFrames frames of a device within radioWindow, because devices
// do not report the battery in each frame.
const (
	radioWindow = 366 * 24 * time.Hour
	RadioFrames = 20
)

// Complete sets the missing values of u to those of an earlier uplink. The time of u does not change.
func (u *RadioData) Complete(earlier RadioData) {
	if u.DeviceID == "" {
		*u = earlier
		return
	}
	if u.RSSI == nil && u.SNR == nil && u.Gateways == nil {
		u.RSSI, u.SNR, u.Gateways = earlier.RSSI, earlier.SNR, earlier.Gateways
	}
	if u.Battery == nil {
		u.Battery = earlier.Battery
	}
	if u.Latitude == nil || u.Longitude == nil {
		u.Latitude, u.Longitude = earlier.Latitude, earlier.Longitude
	}
}

// FramePart is the data of one post about a frame that several posts describe.
type FramePart struct {
	Device, Dedup string
	// At is the time with which the frame is stored. It is zero for a post that only supplements the
	// frame.
	At       time.Time
	Gateways []decoders.Gateway
	Position *decoders.Position
}

// MergedFrame is the merged data of all posts about a frame so far.
type MergedFrame struct {
	At       time.Time          // zero until the frame itself arrives
	Gateways []decoders.Gateway // with identifier, RSSI and SNR only
	Position *decoders.Position
}

// receptions returns the gateways that received the frame. A gateway without an ID counts only if no
// gateway has an ID: a later post of the network names all gateways, including this one.
func (m *MergedFrame) receptions() []decoders.Gateway {
	named := slices.DeleteFunc(slices.Clone(m.Gateways), func(g decoders.Gateway) bool { return g.ID == "" })
	if len(named) > 0 {
		return named
	}
	return m.Gateways
}

// merges reports whether a post is merged with other posts about the same frame. Duplicates are also
// merged.
func (w *workItem) merges() bool {
	f := &w.Frame
	return w.outcome.Refused == "" && f.DedupID != "" && (f.Supplement || f.Extensible) && !f.Simulated
}

// mergeParts merges the data of posts about the same frame. The posts may arrive in any order.
func (s *Service) mergeParts(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		var parts []FramePart
		var items []*workItem
		for _, w := range group {
			if !w.merges() {
				continue
			}
			f := &w.Frame
			p := FramePart{Device: f.Identifier, Dedup: boundedDedup(f), Gateways: f.Gateways, Position: f.Position}
			if f.DedupSpan > 0 {
				p.Dedup += "@" + w.firstRecord // the key is unique only within DedupSpan
			}
			if f.Kind == decoders.Uplink && w.open() {
				p.At, _ = SampleTime(f, w.ReceivedAt)
			}
			parts, items = append(parts, p), append(items, w)
		}
		if len(parts) == 0 {
			continue
		}
		var merged []MergedFrame
		ok, err := s.optional.call(ctx, func() (err error) {
			merged, err = s.cache.MergeParts(ctx, acct, parts, s.options.DedupWindow)
			return err
		})
		if err != nil {
			return fmt.Errorf("iot: merge posts of a frame: %w", err)
		}
		if !ok { // without a cache, posts are not merged
			continue
		}
		for i := range merged {
			items[i].merged = &merged[i]
		}
	}
	return nil
}

// supplement returns the radio data that a post adds to a frame, or nil. The radio data has the frame's
// time. The time is unknown if the frame has not arrived or the cache has lost it. Then the data of a
// post without a payload has the time of the post, which networks set to the frame's time, and a post
// with a payload is stored as the frame itself.
func (w *workItem) supplement() *RadioData {
	frame := MergedFrame{Gateways: w.Frame.Gateways, Position: w.Frame.Position}
	if w.merged != nil {
		frame = *w.merged
	}
	if frame.At.IsZero() {
		if !w.merges() || w.Frame.Kind == decoders.Uplink || w.Frame.NetworkTime.IsZero() {
			return nil
		}
		frame.At, _ = SampleTime(&w.Frame, w.ReceivedAt)
	}
	u := w.newRadioData(frame.At)
	u.setReceptions(frame.receptions())
	u.setPosition(frame.Position)
	return u.orNil()
}
