package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
)

// uplinkOf keeps the radio side of a frame, if it says anything of it: of an
// uplink and a status all there is, of a location the position.
func uplinkOf(w *work) *Uplink {
	f := &w.Frame
	switch {
	case f.Supplement && f.Kind != decoders.Uplink:
		return w.addition()
	case f.Kind == decoders.Location:
		u := w.bare(w.at)
		u.place(f.Position)
		return u.orNil()
	case f.Kind != decoders.Uplink && f.Kind != decoders.Status:
		return nil
	}
	u := w.bare(w.at)
	u.Battery, u.Margin = f.Battery, f.Margin
	if f.HasFCnt {
		u.FCnt = new(f.FCnt)
	}
	if f.HasFPort {
		u.FPort = new(int64(f.FPort))
	}
	gateways, position := f.Gateways, f.Position
	if w.whole != nil {
		gateways, position = w.whole.heard(), w.whole.Position
	}
	u.receptions(gateways)
	u.place(position)
	return u.orNil()
}

// bare is an Uplink of the frame's device that says nothing yet.
func (w *work) bare(at time.Time) *Uplink {
	return &Uplink{Account: w.Account, DeviceID: w.device.Device.ID, Identifier: w.device.Device.Identifier, Time: at}
}

// receptions keeps how many gateways heard the frame, and the best of them.
func (u *Uplink) receptions(gateways []decoders.Gateway) {
	if n := len(gateways); n > 0 {
		u.Gateways = new(int64(n))
	}
	f := decoders.Frame{Gateways: gateways}
	if best, ok := f.BestGateway(); ok {
		u.RSSI, u.SNR = best.RSSI, best.SNR
	}
}

func (u *Uplink) place(p *decoders.Position) {
	if p != nil {
		u.Latitude, u.Longitude = new(p.Latitude), new(p.Longitude)
	}
}

// orNil returns nil for an Uplink that says nothing but a port.
func (u *Uplink) orNil() *Uplink {
	if u.FCnt == nil && u.Battery == nil && u.Margin == nil && u.Gateways == nil && u.Latitude == nil {
		return nil
	}
	return u
}

// heard is when the network heard the frame, as far as it says so plausibly,
// else when it was received; never later than that.
func (w *work) heard() time.Time {
	at := w.Frame.NetworkTime
	if !Plausible(at, w.ReceivedAt) || at.After(w.ReceivedAt) {
		at = w.ReceivedAt
	}
	return at.UTC()
}

// lastHeard is when each device of a batch was heard last, by device id.
func lastHeard(group []*work) map[string]time.Time {
	out := make(map[string]time.Time)
	for _, w := range group {
		if w.device == nil || w.out.Duplicate || w.Frame.Simulated || !fromDevice(w.Frame.Kind) {
			continue
		}
		if id, at := w.device.Device.ID, w.heard(); at.After(out[id]) {
			out[id] = at
		}
	}
	return out
}

// fromDevice reports whether an event of this kind shows that the device spoke.
func fromDevice(k decoders.EventKind) bool { return imports(k) || k == decoders.Ack }

// lastSeen writes into devices when each was heard last.
func (s *Service) lastSeen(ctx context.Context, acct account.ID, devices []Device) error {
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

func (s *Service) oneSeen(ctx context.Context, acct account.ID, d Device, err error) (Device, error) {
	if err != nil {
		return d, err
	}
	one := []Device{d}
	err = s.lastSeen(ctx, acct, one)
	return one[0], err
}
