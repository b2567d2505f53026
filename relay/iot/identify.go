package iot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// accountRecords has the cached records of an account for one batch. loadLimits loads the limits and
// the location of new devices when a frame creates a device.
type accountRecords struct {
	acct         relay.AccountID
	cache        *accountCache
	limitsLoaded bool
	devicesLeft  int
	seriesLeft   int
	location     string
}

// identify finds the device of each frame and creates missing devices.
func (s *Service) identify(ctx context.Context, b *frameBatch) error {
	for acct, group := range b.groups {
		records := &accountRecords{acct: acct, cache: s.records.account(acct)}
		uncached, err := s.load(ctx, records, group)
		if err == nil && uncached {
			err = s.createFromFrames(ctx, records, group)
		}
		if err != nil {
			return err
		}
		for _, w := range group {
			id := w.Frame.Identifier
			w.device = records.cache.device(id)
			switch creates := createsDevice(w.Frame.Kind); {
			case !w.isAccepted(): // a refused frame or a duplicate creates no device
				continue
			case w.device == nil && !creates && w.Frame.Supplement:
				w.note("device %s is not known; the data of the post is used if the frame itself arrives", id)
				continue
			case w.device == nil && !creates:
				w.refuse("device %s is not known", id)
				w.outcome.Provisional = true
				continue
			case w.device == nil:
				if err := s.createFromFrame(ctx, records, w); err != nil {
					return err
				}
			}
			if w.isAccepted() {
				if err := s.assignDecoder(ctx, records, w); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// load loads the devices of a group that are not in the cache, in one query. It reports whether any
// device was not in the cache.
func (s *Service) load(ctx context.Context, records *accountRecords, group []*workItem) (uncached bool, err error) {
	missing := make(map[string]bool)
	var identifiers []string
	for _, w := range group {
		id := w.Frame.Identifier
		if (w.isAccepted() || w.isMergeable()) && !missing[id] && records.cache.device(id) == nil {
			missing[id] = true
			identifiers = append(identifiers, id)
		}
	}
	if len(identifiers) == 0 {
		return false, nil
	}
	found, err := s.store.Load(ctx, records.acct, identifiers)
	if err != nil {
		return true, fmt.Errorf("iot: load devices: %w", err)
	}
	for identifier, k := range found {
		c, _, err := s.decoder(ctx, records, k.Device.DecoderID)
		if err != nil {
			return true, err
		}
		records.cache.putDevice(identifier, newCachedDevice(k.Device, k.Sensors, c))
	}
	return true, nil
}

// createsDevice reports whether a frame of this kind proves that its device exists.
func createsDevice(k decoders.FrameKind) bool {
	return k == decoders.Uplink || k == decoders.Join || k == decoders.Status
}

// assignDecoder assigns the webhook's decoder to a device without one.
func (s *Service) assignDecoder(ctx context.Context, records *accountRecords, w *workItem) error {
	if w.DecoderID == "" || w.device.Device.DecoderID != "" {
		return nil
	}
	if _, err := s.namedDecoder(ctx, records, w); err != nil || !w.isAccepted() {
		return err
	}
	d, err := s.store.ChangeDevice(ctx, records.acct, w.device.Device.ID, func(d *Device) error {
		if d.DecoderID == "" { // otherwise it has just been changed
			d.DecoderID, d.UpdatedAt = w.DecoderID, s.options.Now().UTC()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("iot: device %s: set its decoder: %w", w.device.Device.ID, s.retryIfGone(records.acct, err))
	}
	c, _, err := s.decoder(ctx, records, d.DecoderID)
	if err != nil {
		return err
	}
	assigned := newCachedDevice(d, nil, c)
	assigned.sensors.Store(w.device.sensors.Load())
	w.device = assigned
	records.cache.putDevice(d.Identifier, assigned)
	return nil
}

// namedDecoder returns the decoder named by the webhook, or nil. It refuses the frame if the decoder
// does not exist.
func (s *Service) namedDecoder(ctx context.Context, records *accountRecords, w *workItem) (*compiledDecoder, error) {
	c, missing, err := s.decoder(ctx, records, w.DecoderID)
	if missing {
		w.refuse("decoder %s is not known", w.DecoderID)
	}
	return c, err
}

// createFromFrame creates the device of a frame, or finds the device if another gateway has created it. It
// refuses the frame if the device cannot be created.
func (s *Service) createFromFrame(ctx context.Context, records *accountRecords, w *workItem) error {
	known, c, refusal, err := s.planDevice(ctx, records, w, 0, 0)
	if err != nil {
		return err
	}
	if refusal != "" {
		w.refuse("%s", refusal)
		return nil
	}
	identifier := w.Frame.Identifier
	// A device that already exists may be deleted before it is loaded.
	for range 3 {
		err = s.store.CreateDevice(ctx, records.acct, known.Device, known.Sensors)
		if err == nil {
			w.device = records.addDevice(known, c)
			return nil
		}
		if relay.KindOf(err) != relay.KindConflict {
			return fmt.Errorf("iot: create device %s: %w", identifier, s.retryIfGone(records.acct, err))
		}
		if _, err := s.load(ctx, records, []*workItem{w}); err != nil {
			return err
		}
		if w.device = records.cache.device(identifier); w.device != nil {
			return nil
		}
	}
	w.refuse("device %s has already been claimed by another account", identifier)
	return nil
}

// planDevice returns the device that a frame creates, with its sensors and decoder, or the reason why
// the frame cannot create a device. devices and series are the numbers of already planned ones. They
// count toward the limits.
func (s *Service) planDevice(ctx context.Context, records *accountRecords, w *workItem, devices, series int) (known DeviceWithSensors, c *compiledDecoder, refusal string, err error) {
	if err := s.loadLimits(ctx, records); err != nil {
		return known, nil, "", err
	}
	if devices >= records.devicesLeft {
		return known, nil, fmt.Sprintf("the account has %d devices, the largest number that frames may create", s.options.MaxDevices), nil
	}
	c, missing, err := s.decoder(ctx, records, w.DecoderID)
	if err != nil {
		return known, nil, "", err
	}
	if missing {
		return known, nil, fmt.Sprintf("decoder %s is not known", w.DecoderID), nil
	}
	now := s.options.Now().UTC()
	d := Device{
		ID: s.options.NewID(), Identifier: w.Frame.Identifier, Type: Other,
		Name: cmp.Or(w.Frame.Name, w.Frame.Identifier), DecoderID: w.DecoderID, LocationID: records.location,
		CreatedAt: now, UpdatedAt: now,
	}
	if w.Frame.IsDevEUI {
		d.Type = LoRaWAN
	}
	known = DeviceWithSensors{Device: d, Sensors: s.sensorsFor(d, c, nil)}
	if series+len(known.Sensors) > records.seriesLeft {
		refusal = s.seriesLimitReason()
	}
	return known, c, refusal, nil
}

// addDevice adds a new device to the cache and subtracts it from the limits.
func (records *accountRecords) addDevice(known DeviceWithSensors, c *compiledDecoder) *cachedDevice {
	records.devicesLeft--
	records.seriesLeft -= len(known.Sensors)
	cd := newCachedDevice(known.Device, known.Sensors, c)
	records.cache.putDevice(known.Device.Identifier, cd)
	return cd
}

// loadLimits loads the limits and the location of new devices, once per batch.
func (s *Service) loadLimits(ctx context.Context, records *accountRecords) error {
	if records.limitsLoaded {
		return nil
	}
	n, err := s.store.CountDevices(ctx, records.acct)
	if err != nil {
		return fmt.Errorf("iot: count devices: %w", err)
	}
	series, err := s.store.CountSensors(ctx, records.acct)
	if err != nil {
		return fmt.Errorf("iot: count sensors: %w", err)
	}
	locations, err := s.store.Locations(ctx, records.acct)
	if err != nil {
		return fmt.Errorf("iot: locations: %w", err)
	}
	records.devicesLeft, records.seriesLeft = s.options.MaxDevices-n, s.options.MaxSeries-series
	if i := slices.IndexFunc(locations, func(l Location) bool { return l.Imported }); i >= 0 {
		records.location = locations[i].ID
	}
	records.limitsLoaded = true
	return nil
}

// sensorsFor returns new sensors for the keys that a decoder maps and that have no sensor in existing.
func (s *Service) sensorsFor(d Device, c *compiledDecoder, existing map[string]*Sensor) []Sensor {
	if c == nil {
		return nil
	}
	now := s.options.Now().UTC()
	var sensors []Sensor
	for _, m := range c.Sensors {
		if existing[m.Key] != nil {
			continue
		}
		sensors = append(sensors, Sensor{
			ID: SensorID(d.ID, m.Key), DeviceID: d.ID, Key: m.Key, Name: m.Key,
			Slope: 1, SensorTypeID: m.SensorTypeID, CreatedAt: now, UpdatedAt: now,
		})
	}
	return sensors
}

// devicesPerTransaction is the number of devices that one transaction creates. With a transaction for
// each device, a fleet of new devices would wait for one sync of the disk per device.
const devicesPerTransaction = 100

// createFromFrames creates the devices of a group's frames, several in one transaction. It skips devices
// that cannot be created: createFromFrame then refuses their frames or finds the devices.
func (s *Service) createFromFrames(ctx context.Context, records *accountRecords, group []*workItem) error {
	// 1. Select the first frame of each unknown device. If that frame cannot create the device,
	// identify creates the device for a later frame of the batch.
	selected := make(map[string]bool)
	var newFrames []*workItem
	for _, w := range group {
		id := w.Frame.Identifier
		if !w.isAccepted() || selected[id] || records.cache.device(id) != nil {
			continue
		}
		selected[id] = true
		if createsDevice(w.Frame.Kind) {
			newFrames = append(newFrames, w)
		}
	}
	if len(newFrames) < 2 {
		return nil
	}

	// 2. Plan the devices, up to the limits of the account.
	var planned []DeviceWithSensors
	compiled := make(map[string]*compiledDecoder) // by identifier
	series := 0
	for _, w := range newFrames {
		known, c, refusal, err := s.planDevice(ctx, records, w, len(planned), series)
		if err != nil {
			return err
		}
		if refusal == "" {
			series += len(known.Sensors)
			compiled[known.Device.Identifier] = c
			planned = append(planned, known)
		}
	}

	// 3. Create the devices in the order of their identifiers, so that gateways that create the same
	// devices do not deadlock.
	slices.SortFunc(planned, func(a, b DeviceWithSensors) int { return cmp.Compare(a.Device.Identifier, b.Device.Identifier) })
	for chunk := range slices.Chunk(planned, devicesPerTransaction) {
		err := s.store.CreateDevices(ctx, records.acct, chunk)
		if relay.KindOf(err) == relay.KindConflict {
			continue
		}
		if err != nil {
			return fmt.Errorf("iot: create %d devices: %w", len(chunk), s.retryIfGone(records.acct, err))
		}
		for _, known := range chunk {
			records.addDevice(known, compiled[known.Device.Identifier])
		}
	}
	return nil
}
