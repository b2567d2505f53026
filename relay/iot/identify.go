package iot

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// identify finds the device of every frame and imports those that are new.
func (s *Service) identify(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		known := s.memory.of(acct)
		if err := s.load(ctx, acct, known, group); err != nil {
			return err
		}
		for _, w := range group {
			if !w.open() {
				continue
			}
			if err := s.attach(ctx, acct, known, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// load fetches the devices of a group that are not remembered, in one go.
func (s *Service) load(ctx context.Context, acct account.ID, known *remembered, group []*work) error {
	missing := make(map[string]bool)
	var names []string
	for _, w := range group {
		id := w.Frame.Identifier
		if w.open() && id != "" && !missing[id] && known.profile(id) == nil {
			missing[id] = true
			names = append(names, id)
		}
	}
	if len(names) == 0 {
		return nil
	}
	found, err := s.store.Load(ctx, acct, names)
	if err != nil {
		return fmt.Errorf("iot: load devices: %w", err)
	}
	for identifier, k := range found {
		if err := s.remember(ctx, acct, known, identifier, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) remember(ctx context.Context, acct account.ID, known *remembered, identifier string, k Known) error {
	c, err := s.decoder(ctx, acct, known, k.Device.DecoderID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return fmt.Errorf("iot: decoder %s: %w", k.Device.DecoderID, err)
	}
	known.keep(identifier, newProfile(k.Device, k.Sensors, c))
	return nil
}

// attach gives a frame its device, importing it if it is new.
func (s *Service) attach(ctx context.Context, acct account.ID, known *remembered, w *work) error {
	id := w.Frame.Identifier
	if id == "" {
		w.refuse("the frame names no device")
		return nil
	}
	w.device = known.profile(id)
	if w.device == nil {
		if !imports(w.Frame.Kind) {
			w.refuse("device %s is not known", id)
			return nil
		}
		if err := s.importDevice(ctx, acct, known, w); err != nil || !w.open() {
			return err
		}
	}
	return s.lend(ctx, acct, known, w)
}

// imports reports whether an event of this kind shows that the device exists.
func imports(k decoders.EventKind) bool {
	return k == decoders.Uplink || k == decoders.Join || k == decoders.Status
}

// lend gives a device without a decoder the one that the webhook names.
func (s *Service) lend(ctx context.Context, acct account.ID, known *remembered, w *work) error {
	if w.DecoderID == "" || w.device.Device.DecoderID != "" {
		return nil
	}
	c, err := s.decoder(ctx, acct, known, w.DecoderID)
	if relay.KindOf(err) == relay.KindNotFound {
		w.refuse("decoder %s is not known", w.DecoderID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("iot: decoder %s: %w", w.DecoderID, err)
	}
	d := w.device.Device
	d.DecoderID, d.UpdatedAt = w.DecoderID, s.options.Now().UTC()
	if err := s.store.UpdateDevice(ctx, acct, d); err != nil {
		return fmt.Errorf("iot: device %s: set its decoder: %w", d.ID, err)
	}
	lent := newProfile(d, nil, c)
	lent.sensors.Store(w.device.sensors.Load())
	w.device = lent
	known.keep(d.Identifier, w.device)
	return nil
}

// importDevice creates the device of a frame nobody has announced.
func (s *Service) importDevice(ctx context.Context, acct account.ID, known *remembered, w *work) error {
	full, err := s.full(ctx, acct)
	if err != nil {
		return err
	}
	if full {
		w.refuse("the account has %d devices, the most that frames may create", s.options.MaxDevices)
		return nil
	}
	c, err := s.decoder(ctx, acct, known, w.DecoderID)
	if relay.KindOf(err) == relay.KindNotFound {
		w.refuse("decoder %s is not known", w.DecoderID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("iot: decoder %s: %w", w.DecoderID, err)
	}
	location, err := s.importLocation(ctx, acct)
	if err != nil {
		return err
	}
	d := s.newDevice(w, location)
	sensors := s.sensorsFor(d, c, nil)
	err = s.store.CreateDevice(ctx, acct, d, sensors)
	if relay.KindOf(err) == relay.KindConflict {
		return s.taken(ctx, acct, known, w)
	}
	if err != nil {
		return fmt.Errorf("iot: import device %s: %w", d.Identifier, err)
	}
	w.device = newProfile(d, sensors, c)
	known.keep(d.Identifier, w.device)
	return nil
}

// taken looks again at a device that somebody else created meanwhile, or that
// another account has.
func (s *Service) taken(ctx context.Context, acct account.ID, known *remembered, w *work) error {
	if err := s.load(ctx, acct, known, []*work{w}); err != nil {
		return err
	}
	if w.device = known.profile(w.Frame.Identifier); w.device == nil {
		w.refuse("device %s has already been claimed by another account", w.Frame.Identifier)
	}
	return nil
}

func (s *Service) full(ctx context.Context, acct account.ID) (bool, error) {
	n, err := s.store.CountDevices(ctx, acct)
	if err != nil {
		return false, fmt.Errorf("iot: count devices: %w", err)
	}
	return n >= s.options.MaxDevices, nil
}

func (s *Service) importLocation(ctx context.Context, acct account.ID) (string, error) {
	locations, err := s.store.Locations(ctx, acct)
	if err != nil {
		return "", fmt.Errorf("iot: locations: %w", err)
	}
	for _, l := range locations {
		if l.Imported {
			return l.ID, nil
		}
	}
	return "", nil
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

// sensorsFor makes the sensors that a decoder maps and a device lacks.
func (s *Service) sensorsFor(d Device, c *compiled, have map[string]*Sensor) []Sensor {
	if c == nil {
		return nil
	}
	now := s.options.Now().UTC()
	var out []Sensor
	for _, m := range c.Sensors {
		if have[m.Key] != nil {
			continue
		}
		out = append(out, Sensor{
			ID: SensorID(d.ID, m.Key), DeviceID: d.ID, Key: m.Key, Name: m.Key,
			Slope: 1, SensorTypeID: m.SensorTypeID, CreatedAt: now, UpdatedAt: now,
		})
	}
	return out
}

// addMissingSensors gives a device the sensors of keys that its decoder maps
// since the device was made.
func (s *Service) addMissingSensors(ctx context.Context, acct account.ID, p *profile) error {
	have := *p.sensors.Load()
	missing := s.sensorsFor(p.Device, p.decoder, have)
	if len(missing) == 0 {
		return nil
	}
	if err := s.store.AddSensors(ctx, acct, p.Device.ID, missing); err != nil {
		return fmt.Errorf("iot: device %s: add sensors: %w", p.Device.ID, err)
	}
	sensors, err := s.store.Sensors(ctx, acct, p.Device.ID)
	if err != nil {
		return fmt.Errorf("iot: device %s: sensors: %w", p.Device.ID, err)
	}
	grown := maps.Clone(have)
	for i := range sensors {
		grown[sensors[i].Key] = &sensors[i]
	}
	p.sensors.Store(&grown)
	return nil
}
