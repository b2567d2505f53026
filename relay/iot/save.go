package iot

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// save writes to the reading store, and then keeps what was stored as the
// latest values. What the store could not take in is written again later, as
// its port says.
func (s *Service) save(ctx context.Context, b *batch) error {
	var write Batch
	var points, uplinks []*work // whose write.Points[i] and write.Uplinks[i] are
	for _, w := range b.all {
		if !w.open() {
			continue
		}
		for _, p := range w.points {
			write.Points = append(write.Points, p)
			points = append(points, w)
		}
		if w.uplink != nil {
			write.Uplinks = append(write.Uplinks, *w.uplink)
			uplinks = append(uplinks, w)
		}
		w.out.Points = w.points
	}
	if len(write.Points)+len(write.Uplinks) == 0 {
		return nil
	}
	refused, err := s.readings.Write(ctx, write)
	if err != nil {
		return relay.Errorf(relay.KindUnavailable, "iot: store readings: %w", err)
	}
	for _, r := range refused {
		if r.Point >= 0 {
			points[r.Point].lost(write.Points[r.Point], r.Reason)
		} else {
			uplinks[r.Uplink].out.Lost = append(uplinks[r.Uplink].out.Lost, "uplink: "+r.Reason)
		}
	}
	return s.keepLatest(ctx, b)
}

// keepLatest keeps the points that were stored as the latest values.
func (s *Service) keepLatest(ctx context.Context, b *batch) error {
	latest := make(map[account.ID][]Point, len(b.groups))
	for _, w := range b.all {
		if len(w.out.Points) > 0 {
			latest[w.Account] = append(latest[w.Account], w.out.Points...)
		}
	}
	var g errgroup.Group
	g.SetLimit(8)
	for acct, points := range latest {
		g.Go(func() error { return s.store.SetLatest(ctx, acct, points) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("iot: latest values: %w", err)
	}
	return nil
}

// uplinkOf keeps the radio side of a frame, if it says anything of it.
func uplinkOf(w *work) *Uplink {
	f := &w.Frame
	if f.Kind != decoders.Uplink && f.Kind != decoders.Status {
		return nil
	}
	u := Uplink{
		Account: w.Account, DeviceID: w.device.Device.ID, Identifier: w.device.Device.Identifier,
		Time: w.at, Battery: f.Battery,
	}
	if f.HasFCnt {
		u.FCnt = &f.FCnt
	}
	if f.HasFPort {
		u.FPort = new(int64(f.FPort))
	}
	if n := len(f.Gateways); n > 0 {
		u.Gateways = new(int64(n))
	}
	if best, ok := f.BestGateway(); ok {
		u.RSSI, u.SNR = best.RSSI, best.SNR
	}
	if u.FCnt == nil && u.Battery == nil && u.Gateways == nil {
		return nil
	}
	return &u
}
