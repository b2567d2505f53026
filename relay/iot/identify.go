package iot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// visit is what identifying the frames of one account needs.
type visit struct {
	acct  account.ID
	known *remembered
	// What importing needs, asked for once: how many devices and series frames
	// may still create, and where they belong.
	asked    bool
	room     int
	series   int
	location string
}

// identify finds the device of every frame and imports those that are new.
func (s *Service) identify(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		v := &visit{acct: acct, known: s.memory.of(acct)}
		if err := s.load(ctx, v, group); err != nil {
			return err
		}
		for _, w := range group {
			if !w.open() {
				w.device = v.known.profile(w.Frame.Identifier) // one seen before may add to what is stored
				continue
			}
			if err := s.attach(ctx, v, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// load fetches the devices of a group that are not remembered, in one go.
func (s *Service) load(ctx context.Context, v *visit, group []*work) error {
	missing := make(map[string]bool)
	var names []string
	for _, w := range group {
		id := w.Frame.Identifier
		if (w.open() || w.joins()) && !missing[id] && v.known.profile(id) == nil {
			missing[id] = true
			names = append(names, id)
		}
	}
	if len(names) == 0 {
		return nil
	}
	found, err := s.store.Load(ctx, v.acct, names)
	if err != nil {
		return fmt.Errorf("iot: load devices: %w", err)
	}
	for identifier, k := range found {
		if err := s.remember(ctx, v, identifier, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) remember(ctx context.Context, v *visit, identifier string, k Known) error {
	c, err := s.decoder(ctx, v, k.Device.DecoderID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return fmt.Errorf("iot: decoder %s: %w", k.Device.DecoderID, err)
	}
	v.known.keep(identifier, newProfile(k.Device, k.Sensors, c))
	return nil
}

// attach gives a frame its device, importing it if it is new.
func (s *Service) attach(ctx context.Context, v *visit, w *work) error {
	id := w.Frame.Identifier
	w.device = v.known.profile(id)
	if w.device == nil {
		if !imports(w.Frame.Kind) && w.Frame.Supplement {
			return nil // the frame that it adds to may still come
		}
		if !imports(w.Frame.Kind) {
			w.refuse("device %s is not known", id)
			w.out.Early = true
			return nil
		}
		if err := s.importDevice(ctx, v, w); err != nil || !w.open() {
			return err
		}
	}
	return s.lend(ctx, v, w)
}

// imports reports whether an event of this kind shows that the device exists.
func imports(k decoders.EventKind) bool {
	return k == decoders.Uplink || k == decoders.Join || k == decoders.Status
}

// lend gives a device without a decoder the one that the webhook names.
func (s *Service) lend(ctx context.Context, v *visit, w *work) error {
	if w.DecoderID == "" || w.device.Device.DecoderID != "" {
		return nil
	}
	if _, err := s.wanted(ctx, v, w); err != nil || !w.open() {
		return err
	}
	d, err := s.store.ChangeDevice(ctx, v.acct, w.device.Device.ID, func(d *Device) error {
		if d.DecoderID == "" { // nobody was faster
			d.DecoderID, d.UpdatedAt = w.DecoderID, s.options.Now().UTC()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("iot: device %s: set its decoder: %w", w.device.Device.ID, err)
	}
	c, err := s.decoder(ctx, v, d.DecoderID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return fmt.Errorf("iot: decoder %s: %w", d.DecoderID, err)
	}
	lent := newProfile(d, nil, c)
	lent.sensors.Store(w.device.sensors.Load())
	w.device = lent
	v.known.keep(d.Identifier, lent)
	return nil
}

// wanted returns the decoder that the webhook names, nil if it names none, and
// refuses the frame if there is no such decoder.
func (s *Service) wanted(ctx context.Context, v *visit, w *work) (*compiled, error) {
	c, err := s.decoder(ctx, v, w.DecoderID)
	if relay.KindOf(err) == relay.KindNotFound {
		w.refuse("decoder %s is not known", w.DecoderID)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("iot: decoder %s: %w", w.DecoderID, err)
	}
	return c, nil
}

// importDevice creates the device of a frame nobody has announced.
func (s *Service) importDevice(ctx context.Context, v *visit, w *work) error {
	if err := s.ask(ctx, v); err != nil {
		return err
	}
	if v.room <= 0 {
		w.refuse("the account has %d devices, the most that frames may create", s.options.MaxDevices)
		return nil
	}
	c, err := s.wanted(ctx, v, w)
	if err != nil || !w.open() {
		return err
	}
	d := s.newDevice(w, v.location)
	sensors := s.sensorsFor(d, c, nil)
	if len(sensors) > v.series {
		w.refuse("%s", s.noSeries())
		return nil
	}
	// One of ours that stood in the way may be deleted before it is looked at.
	for range 3 {
		err = s.store.CreateDevice(ctx, v.acct, d, sensors)
		if err == nil {
			v.room--
			v.series -= len(sensors)
			w.device = newProfile(d, sensors, c)
			v.known.keep(d.Identifier, w.device)
			return nil
		}
		if relay.KindOf(err) != relay.KindConflict {
			return fmt.Errorf("iot: import device %s: %w", d.Identifier, err)
		}
		if err := s.load(ctx, v, []*work{w}); err != nil {
			return err
		}
		if w.device = v.known.profile(d.Identifier); w.device != nil {
			return nil // somebody else created it meanwhile
		}
	}
	w.refuse("device %s has already been claimed by another account", d.Identifier)
	return nil
}

// ask finds out, once for the batch, what importing needs to know.
func (s *Service) ask(ctx context.Context, v *visit) error {
	if v.asked {
		return nil
	}
	n, err := s.store.CountDevices(ctx, v.acct)
	if err != nil {
		return fmt.Errorf("iot: count devices: %w", err)
	}
	series, err := s.store.CountSensors(ctx, v.acct)
	if err != nil {
		return fmt.Errorf("iot: count sensors: %w", err)
	}
	locations, err := s.store.Locations(ctx, v.acct)
	if err != nil {
		return fmt.Errorf("iot: locations: %w", err)
	}
	v.room, v.series = s.options.MaxDevices-n, s.options.MaxSeries-series
	if at := slices.IndexFunc(locations, func(l Location) bool { return l.Imported }); at >= 0 {
		v.location = locations[at].ID
	}
	v.asked = true
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
