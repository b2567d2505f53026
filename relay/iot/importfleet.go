package iot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/relay"
)

// importedAtOnce is how many devices one transaction creates. The disk is synced once
// for all of them: a fleet that moves here would otherwise wait for a sync a device.
const importedAtOnce = 100

// plannedDevice is a device that is to be created, and its decoder.
type plannedDevice struct {
	Known
	decoder *compiled
}

// importFleet creates the new devices of a group's frames, many in one transaction. A
// device that cannot be created so (a limit, a missing decoder, an identifier that is
// taken) is left to importDevice.
func (s *Service) importFleet(ctx context.Context, ab *accountBatch, group []*work) error {
	first := firstFrames(ab, group)
	if len(first) < 2 {
		return nil
	}
	fleet, err := s.planFleet(ctx, ab, first)
	if err != nil {
		return err
	}
	// The same order everywhere: gateways that create the same devices wait for one
	// another and do not deadlock.
	slices.SortFunc(fleet, func(a, b plannedDevice) int { return cmp.Compare(a.Device.Identifier, b.Device.Identifier) })
	for part := range slices.Chunk(fleet, importedAtOnce) {
		records := make([]Known, len(part))
		for i, n := range part {
			records[i] = n.Known
		}
		err := s.store.CreateDevices(ctx, ab.acct, records)
		if relay.KindOf(err) == relay.KindConflict {
			continue
		}
		if err != nil {
			return fmt.Errorf("iot: import %d devices: %w", len(part), err)
		}
		for _, n := range part {
			ab.devicesLeft--
			ab.seriesLeft -= len(n.Sensors)
			ab.cache.putDevice(n.Device.Identifier, newCachedDevice(n.Device, n.Sensors, n.decoder))
		}
	}
	return nil
}

// firstFrames returns the first frame of each unknown device of a group. One that
// creates no device is left out with the later ones, since it is refused.
func firstFrames(ab *accountBatch, group []*work) (first []*work) {
	seen := make(map[string]bool)
	for _, w := range group {
		id := w.Frame.Identifier
		if !w.open() || seen[id] || ab.cache.device(id) != nil {
			continue
		}
		seen[id] = true
		if createsDevice(w.Frame.Kind) {
			first = append(first, w)
		}
	}
	return first
}

// planFleet returns the devices that first frames create.
func (s *Service) planFleet(ctx context.Context, ab *accountBatch, first []*work) (fleet []plannedDevice, err error) {
	if err := s.loadLimits(ctx, ab); err != nil {
		return nil, err
	}
	series := 0
	for _, w := range first {
		c, missing, err := s.decoder(ctx, ab, w.DecoderID)
		if err != nil {
			return nil, err
		}
		if missing {
			continue
		}
		d := s.newDevice(w, ab.location)
		sensors := s.sensorsFor(d, c, nil)
		if len(fleet) >= ab.devicesLeft || series+len(sensors) > ab.seriesLeft {
			continue
		}
		series += len(sensors)
		fleet = append(fleet, plannedDevice{Known: Known{Device: d, Sensors: sensors}, decoder: c})
	}
	return fleet, nil
}
