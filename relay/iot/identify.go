package iot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

type accountBatch struct {
	acct  relay.AccountID
	cache *accountCache
	// The limits for creating devices are loaded once per batch, and only if a
	// frame needs them.
	limitsLoaded bool
	devicesLeft  int
	seriesLeft   int
	location     string // of the devices that are created
}

// identify finds the device of every frame and creates those that are new.
func (s *Service) identify(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		ab := &accountBatch{acct: acct, cache: s.accounts.account(acct)}
		uncached, err := s.load(ctx, ab, group)
		if err == nil && uncached {
			err = s.importFleet(ctx, ab, group)
		}
		if err != nil {
			return err
		}
		for _, w := range group {
			id := w.Frame.Identifier
			w.device = ab.cache.device(id)
			switch creates := createsDevice(w.Frame.Kind); {
			case !w.open(): // a duplicate may supplement the stored frame
				continue
			case w.device == nil && !creates && w.Frame.Supplement:
				w.note("device %s is not known; what the post adds is used if the frame itself arrives", id)
				continue
			case w.device == nil && !creates:
				w.refuse("device %s is not known", id)
				w.outcome.Provisional = true
				continue
			case w.device == nil:
				if err := s.importDevice(ctx, ab, w); err != nil {
					return err
				}
			}
			if w.open() {
				if err := s.assignDecoder(ctx, ab, w); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// load fetches the devices of a group that are not in the cache, in one query, and
// reports whether there were any.
func (s *Service) load(ctx context.Context, ab *accountBatch, group []*work) (uncached bool, err error) {
	missing := make(map[string]bool)
	var names []string
	for _, w := range group {
		id := w.Frame.Identifier
		if (w.open() || w.merges()) && !missing[id] && ab.cache.device(id) == nil {
			missing[id] = true
			names = append(names, id)
		}
	}
	if len(names) == 0 {
		return false, nil
	}
	found, err := s.store.Load(ctx, ab.acct, names)
	if err != nil {
		return true, fmt.Errorf("iot: load devices: %w", err)
	}
	for identifier, k := range found {
		c, _, err := s.decoder(ctx, ab, k.Device.DecoderID)
		if err != nil {
			return true, err
		}
		ab.cache.putDevice(identifier, newCachedDevice(k.Device, k.Sensors, c))
	}
	return true, nil
}

// createsDevice reports whether a frame of this kind proves that its device exists.
func createsDevice(k decoders.FrameKind) bool {
	return k == decoders.Uplink || k == decoders.Join || k == decoders.Status
}

// assignDecoder assigns the webhook's decoder to a device without one.
func (s *Service) assignDecoder(ctx context.Context, ab *accountBatch, w *work) error {
	if w.DecoderID == "" || w.device.Device.DecoderID != "" {
		return nil
	}
	if _, err := s.namedDecoder(ctx, ab, w); err != nil || !w.open() {
		return err
	}
	d, err := s.store.ChangeDevice(ctx, ab.acct, w.device.Device.ID, func(d *Device) error {
		if d.DecoderID == "" { // it has not changed since it was read
			d.DecoderID, d.UpdatedAt = w.DecoderID, s.options.Now().UTC()
		}
		return nil
	})
	if err != nil {
		err = s.retryIfGone(ab.acct, err)
		return fmt.Errorf("iot: device %s: set its decoder: %w", w.device.Device.ID, err)
	}
	c, _, err := s.decoder(ctx, ab, d.DecoderID)
	if err != nil {
		return err
	}
	assigned := newCachedDevice(d, nil, c)
	assigned.sensors.Store(w.device.sensors.Load())
	w.device = assigned
	ab.cache.putDevice(d.Identifier, assigned)
	return nil
}

// namedDecoder returns the decoder that the webhook names, nil if it names none. It
// refuses the frame if the decoder does not exist.
func (s *Service) namedDecoder(ctx context.Context, ab *accountBatch, w *work) (*compiled, error) {
	c, missing, err := s.decoder(ctx, ab, w.DecoderID)
	if missing {
		w.refuse("decoder %s is not known", w.DecoderID)
	}
	return c, err
}

func (s *Service) importDevice(ctx context.Context, ab *accountBatch, w *work) error {
	if err := s.loadLimits(ctx, ab); err != nil {
		return err
	}
	if ab.devicesLeft <= 0 {
		w.refuse("the account has %d devices, the most that frames may create", s.options.MaxDevices)
		return nil
	}
	c, err := s.namedDecoder(ctx, ab, w)
	if err != nil || !w.open() {
		return err
	}
	d := s.newDevice(w, ab.location)
	sensors := s.sensorsFor(d, c, nil)
	if len(sensors) > ab.seriesLeft {
		w.refuse("%s", s.seriesLimitReason())
		return nil
	}
	// A device of this account with that identifier may be deleted before it is loaded.
	for range 3 {
		err = s.store.CreateDevice(ctx, ab.acct, d, sensors)
		if err == nil {
			ab.devicesLeft--
			ab.seriesLeft -= len(sensors)
			w.device = newCachedDevice(d, sensors, c)
			ab.cache.putDevice(d.Identifier, w.device)
			return nil
		}
		if relay.KindOf(err) != relay.KindConflict {
			return fmt.Errorf("iot: import device %s: %w", d.Identifier, s.retryIfGone(ab.acct, err))
		}
		if _, err := s.load(ctx, ab, []*work{w}); err != nil {
			return err
		}
		if w.device = ab.cache.device(d.Identifier); w.device != nil {
			return nil // another gateway has created it
		}
	}
	w.refuse("device %s has already been claimed by another account", d.Identifier)
	return nil
}

// loadLimits loads, once per batch, the limits and the location for new devices.
func (s *Service) loadLimits(ctx context.Context, ab *accountBatch) error {
	if ab.limitsLoaded {
		return nil
	}
	n, err := s.store.CountDevices(ctx, ab.acct)
	if err != nil {
		return fmt.Errorf("iot: count devices: %w", err)
	}
	series, err := s.store.CountSensors(ctx, ab.acct)
	if err != nil {
		return fmt.Errorf("iot: count sensors: %w", err)
	}
	locations, err := s.store.Locations(ctx, ab.acct)
	if err != nil {
		return fmt.Errorf("iot: locations: %w", err)
	}
	ab.devicesLeft, ab.seriesLeft = s.options.MaxDevices-n, s.options.MaxSeries-series
	if i := slices.IndexFunc(locations, func(l Location) bool { return l.Imported }); i >= 0 {
		ab.location = locations[i].ID
	}
	ab.limitsLoaded = true
	return nil
}

func (s *Service) newDevice(w *work, location string) Device {
	now := s.options.Now().UTC()
	d := Device{
		ID: s.options.NewID(), Identifier: w.Frame.Identifier, Type: Other,
		Name: cmp.Or(w.Frame.Name, w.Frame.Identifier), DecoderID: w.DecoderID, LocationID: location,
		CreatedAt: now, UpdatedAt: now,
	}
	if w.Frame.IsDevEUI {
		d.Type = LoRaWAN
	}
	return d
}

// sensorsFor returns new sensors for the keys that a decoder maps and a device lacks.
func (s *Service) sensorsFor(d Device, c *compiled, have map[string]*Sensor) []Sensor {
	if c == nil {
		return nil
	}
	now := s.options.Now().UTC()
	var sensors []Sensor
	for _, m := range c.Sensors {
		if have[m.Key] != nil {
			continue
		}
		sensors = append(sensors, Sensor{
			ID: SensorID(d.ID, m.Key), DeviceID: d.ID, Key: m.Key, Name: m.Key,
			Slope: 1, SensorTypeID: m.SensorTypeID, CreatedAt: now, UpdatedAt: now,
		})
	}
	return sensors
}

// importedAtOnce is the number of devices that one transaction creates. The disk is synced
// once for all of them: a fleet that moves here would otherwise wait for a sync a device.
const importedAtOnce = 100

// importFleet creates the new devices of a group's frames, many in one transaction. A
// device that cannot be created so (a limit, a missing decoder, an identifier that is
// taken) is left to importDevice.
func (s *Service) importFleet(ctx context.Context, ab *accountBatch, group []*work) error {
	// 1. Find the first frame of each unknown device. A device whose first frame creates none
	// is left out, since its frames are refused.
	seen := make(map[string]bool)
	var newFrames []*work
	for _, w := range group {
		id := w.Frame.Identifier
		if !w.open() || seen[id] || ab.cache.device(id) != nil {
			continue
		}
		seen[id] = true
		if createsDevice(w.Frame.Kind) {
			newFrames = append(newFrames, w)
		}
	}
	if len(newFrames) < 2 {
		return nil
	}

	// 2. Plan the devices, up to the limits of the account.
	if err := s.loadLimits(ctx, ab); err != nil {
		return err
	}
	var fleet []Known
	decoders := make(map[string]*compiled) // by identifier
	series := 0
	for _, w := range newFrames {
		c, missing, err := s.decoder(ctx, ab, w.DecoderID)
		if err != nil {
			return err
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
		decoders[d.Identifier] = c
		fleet = append(fleet, Known{Device: d, Sensors: sensors})
	}

	// 3. Create them. The order is the same everywhere: gateways that create the same devices
	// wait for one another and do not deadlock.
	slices.SortFunc(fleet, func(a, b Known) int { return cmp.Compare(a.Device.Identifier, b.Device.Identifier) })
	for part := range slices.Chunk(fleet, importedAtOnce) {
		err := s.store.CreateDevices(ctx, ab.acct, part)
		if relay.KindOf(err) == relay.KindConflict {
			continue
		}
		if err != nil {
			return fmt.Errorf("iot: import %d devices: %w", len(part), s.retryIfGone(ab.acct, err))
		}
		for _, known := range part {
			ab.devicesLeft--
			ab.seriesLeft -= len(known.Sensors)
			cd := newCachedDevice(known.Device, known.Sensors, decoders[known.Device.Identifier])
			ab.cache.putDevice(known.Device.Identifier, cd)
		}
	}
	return nil
}
