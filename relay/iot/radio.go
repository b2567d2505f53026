package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// radioDataOf returns the radio data of a frame: all of it for an uplink, battery and
// margin for a status, the position for a location.
func radioDataOf(w *work) *RadioData {
	f := &w.Frame
	switch {
	case f.Supplement && f.Kind != decoders.Uplink:
		return w.supplement()
	case f.Kind == decoders.Location:
		u := w.bare(w.at)
		u.place(f.Position)
		return u.orNil()
	case f.Kind != decoders.Uplink && f.Kind != decoders.Status:
		return nil
	}
	u := w.bare(w.at)
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
	u.receptions(gateways)
	u.place(position)
	return u.orNil()
}

// bare returns RadioData of the frame's device without values.
func (w *work) bare(at time.Time) *RadioData {
	return &RadioData{Account: w.Account, DeviceID: w.device.Device.ID, Identifier: w.device.Device.Identifier, Time: at}
}

// receptions sets the number of gateways that received the frame, and the signal
// of the best one.
func (u *RadioData) receptions(gateways []decoders.Gateway) {
	if n := len(gateways); n > 0 {
		u.Gateways = new(int64(n))
	}
	f := decoders.Frame{Gateways: gateways}
	if best, ok := f.BestGateway(); ok {
		u.RSSI, u.SNR = best.RSSI, best.SNR
	}
}

func (u *RadioData) place(p *decoders.Position) {
	if p != nil {
		u.Latitude, u.Longitude = new(p.Latitude), new(p.Longitude)
	}
}

// orNil returns nil if there is nothing to store: no frame, and no data but a port.
func (u *RadioData) orNil() *RadioData {
	if !u.Frame && u.FCnt == nil && u.Battery == nil && u.Margin == nil && u.Gateways == nil && u.Latitude == nil {
		return nil
	}
	return u
}

// heard returns the network server's time of receipt if it is plausible, else the
// time at which this program received the post; never later than that.
func (w *work) heard() time.Time {
	at := w.Frame.NetworkTime
	if !Plausible(at, w.ReceivedAt) || at.After(w.ReceivedAt) {
		at = w.ReceivedAt
	}
	return at.UTC()
}

// lastHeard returns when each device of a group was last heard, by device id.
func lastHeard(b *batch) map[relay.AccountID]map[string]time.Time {
	out := make(map[relay.AccountID]map[string]time.Time)
	for acct, group := range b.groups {
		heard := make(map[string]time.Time)
		for _, w := range group {
			if w.device == nil || w.out.Duplicate || w.Frame.Simulated || !FromDevice(w.Frame.Kind) {
				continue
			}
			if id, at := w.device.Device.ID, w.heard(); at.After(heard[id]) {
				heard[id] = at
			}
		}
		if len(heard) > 0 {
			out[acct] = heard
		}
	}
	return out
}

// FromDevice reports whether an event of this kind was sent by the device.
func FromDevice(k decoders.FrameKind) bool { return createsDevice(k) || k == decoders.Ack }

// lastSeen sets LastSeen of devices.
func (s *Service) lastSeen(ctx context.Context, acct relay.AccountID, devices []Device) error {
	ids := make([]string, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	heard, err := s.heardLast(ctx, acct, ids)
	if err != nil {
		return err
	}
	for i := range devices {
		devices[i].LastSeen = heard[devices[i].ID]
	}
	return nil
}

func (s *Service) oneSeen(ctx context.Context, acct relay.AccountID, d Device, err error) (Device, error) {
	if err != nil {
		return d, err
	}
	one := []Device{d}
	err = s.lastSeen(ctx, acct, one)
	return one[0], err
}
