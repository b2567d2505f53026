package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// radioDataOf returns the radio data of a frame: all data of an uplink or a status, only the position
// of a location, what a supplement of another kind adds, and otherwise nil.
func radioDataOf(w *workItem) *RadioData {
	f := &w.Frame
	switch {
	case f.Supplement && f.Kind != decoders.Uplink:
		return w.supplement()
	case f.Kind == decoders.Location:
		r := w.newRadioData(w.time)
		r.setPosition(f.Position)
		return r.nilIfEmpty()
	case f.Kind != decoders.Uplink && f.Kind != decoders.Status:
		return nil
	}
	r := w.newRadioData(w.time)
	r.Battery, r.Margin = f.Battery, f.Margin
	if f.Kind == decoders.Uplink {
		r.Frame, r.Name = true, w.device.Device.Name
	}
	if f.HasFCnt {
		r.FCnt = new(f.FCnt)
	}
	if f.HasFPort {
		r.FPort = new(int64(f.FPort))
	}
	gateways, position := f.Gateways, f.Position
	if w.merged != nil {
		gateways, position = w.merged.receptions(), w.merged.Position
	}
	r.setReceptions(gateways)
	r.setPosition(position)
	return r.nilIfEmpty()
}

func (w *workItem) newRadioData(t time.Time) *RadioData {
	return &RadioData{Account: w.Account, DeviceID: w.device.Device.ID, Identifier: w.device.Device.Identifier, Time: t}
}

// setReceptions sets the number of gateways that received the frame, and the RSSI and SNR of the best
// gateway.
func (r *RadioData) setReceptions(gateways []decoders.Gateway) {
	if n := len(gateways); n > 0 {
		r.Gateways = new(int64(n))
	}
	f := decoders.Frame{Gateways: gateways}
	if best, ok := f.BestGateway(); ok {
		r.RSSI, r.SNR = best.RSSI, best.SNR
	}
}

func (r *RadioData) setPosition(p *decoders.Position) {
	if p != nil {
		r.Latitude, r.Longitude = new(p.Latitude), new(p.Longitude)
	}
}

// nilIfEmpty returns r, or nil if r is not an uplink and has no data except a port.
func (r *RadioData) nilIfEmpty() *RadioData {
	if !r.Frame && r.FCnt == nil && r.Battery == nil && r.Margin == nil && r.Gateways == nil && r.Latitude == nil {
		return nil
	}
	return r
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
func lastHeard(b *frameBatch) map[relay.AccountID]map[string]time.Time {
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

// Complete sets the missing values of r to those of an earlier uplink. The time of r does not change.
func (r *RadioData) Complete(earlier RadioData) {
	if r.DeviceID == "" {
		*r = earlier
		return
	}
	if r.RSSI == nil && r.SNR == nil && r.Gateways == nil {
		r.RSSI, r.SNR, r.Gateways = earlier.RSSI, earlier.SNR, earlier.Gateways
	}
	if r.Battery == nil {
		r.Battery = earlier.Battery
	}
	if r.Latitude == nil || r.Longitude == nil {
		r.Latitude, r.Longitude = earlier.Latitude, earlier.Longitude
	}
}

// FramePost is the data of one post about a frame that several posts describe.
type FramePost struct {
	Device, Dedup string
	// Time is the time with which the frame is stored. It is zero for a post that only supplements the
	// frame.
	Time     time.Time
	Gateways []decoders.Gateway
	Position *decoders.Position
}

// MergedFrame is the merged data of all posts about a frame so far.
type MergedFrame struct {
	Time     time.Time          // zero until the frame itself arrives
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

// isMergeable reports whether a post is merged with other posts about the same frame. Duplicates are
// also merged.
func (w *workItem) isMergeable() bool {
	f := &w.Frame
	return w.outcome.Refused == "" && f.DedupID != "" && (f.Supplement || f.Extensible) && !f.Simulated
}

// mergePosts merges the data of posts about the same frame. The posts may arrive in any order.
func (s *Service) mergePosts(ctx context.Context, b *frameBatch) error {
	for acct, group := range b.groups {
		var posts []FramePost
		var items []*workItem
		for _, w := range group {
			if !w.isMergeable() {
				continue
			}
			f := &w.Frame
			p := FramePost{Device: f.Identifier, Dedup: boundedDedup(f), Gateways: f.Gateways, Position: f.Position}
			if f.DedupSpan > 0 {
				p.Dedup += "@" + w.firstRecordID // the key is unique only within DedupSpan
			}
			if f.Kind == decoders.Uplink && w.isAccepted() {
				p.Time, _ = SampleTime(f, w.ReceivedAt)
			}
			posts, items = append(posts, p), append(items, w)
		}
		if len(posts) == 0 {
			continue
		}
		var merged []MergedFrame
		ok, err := s.optional.call(ctx, func() (err error) {
			merged, err = s.cache.MergePosts(ctx, acct, posts, s.options.DedupWindow)
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
	if frame.Time.IsZero() {
		if !w.isMergeable() || w.Frame.Kind == decoders.Uplink || w.Frame.NetworkTime.IsZero() {
			return nil
		}
		frame.Time, _ = SampleTime(&w.Frame, w.ReceivedAt)
	}
	r := w.newRadioData(frame.Time)
	r.setReceptions(frame.receptions())
	r.setPosition(frame.Position)
	return r.nilIfEmpty()
}
