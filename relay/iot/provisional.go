package iot

import (
	"context"
	"maps"

	"github.com/penstock/penstock/relay"
)

// provisionalDevices resolves frames to the devices that Ingest would find or
// create, without creating any.
type provisionalDevices struct {
	s       *Service
	fitted  map[*cachedDevice]*cachedDevice
	created map[string]*cachedDevice // devices that do not exist yet, by decoder and identifier
}

func (s *Service) newProvisionalDevices() *provisionalDevices {
	return &provisionalDevices{s: s, fitted: make(map[*cachedDevice]*cachedDevice), created: make(map[string]*cachedDevice)}
}

// resolve sets the devices of one account's frames.
func (pd *provisionalDevices) resolve(ctx context.Context, acct relay.AccountID, group []*work) error {
	ab := &accountBatch{acct: acct, cache: pd.s.accounts.of(acct)}
	if _, err := pd.s.load(ctx, ab, group); err != nil {
		return err
	}
	for _, w := range group {
		if !w.open() {
			continue
		}
		cd, err := pd.device(ctx, ab, w)
		if err != nil {
			return err
		}
		if cd == nil {
			continue // refused
		}
		if w.device, err = pd.fit(ctx, acct, cd); err != nil {
			return err
		}
	}
	return nil
}

// device returns the frame's device, or the one that Ingest would create.
func (pd *provisionalDevices) device(ctx context.Context, ab *accountBatch, w *work) (*cachedDevice, error) {
	id := w.Frame.Identifier
	cd := ab.cache.device(id)
	if cd != nil && (w.DecoderID == "" || cd.Device.DecoderID != "") {
		return cd, nil
	}
	if cd == nil && !createsDevice(w.Frame.Kind) {
		w.refuse("device %s is not known", id)
		return nil, nil
	}
	key := w.DecoderID + "\x00" + id
	if device := pd.created[key]; device != nil {
		return device, nil
	}
	c, err := pd.s.namedDecoder(ctx, ab, w)
	if err != nil || !w.open() {
		return nil, err
	}
	device := newCachedDevice(Device{Identifier: id, DecoderID: w.DecoderID}, nil, c)
	if cd != nil {
		device = newCachedDevice(cd.Device, nil, c)
		device.Device.DecoderID = w.DecoderID
		device.sensors.Store(cd.sensors.Load())
	}
	pd.created[key] = device
	return device, nil
}

// fit returns a device with the sensors that Service.fit would give it.
func (pd *provisionalDevices) fit(ctx context.Context, acct relay.AccountID, cd *cachedDevice) (*cachedDevice, error) {
	if cd.decoder == nil {
		return cd, nil
	}
	if device := pd.fitted[cd]; device != nil {
		return device, nil
	}
	have := *cd.sensors.Load()
	missing := pd.s.sensorsFor(cd.Device, cd.decoder, have)
	out := &cachedDevice{Device: cd.Device, decoder: cd.decoder, params: cd.params}
	out.sensors.Store(&have)
	trial := cd.Device.ID == "" && cd.decoder.ID == "" // a source without records
	if !trial {
		room, err := pd.s.roomForSensors(ctx, acct, len(missing))
		if err != nil {
			return nil, err
		}
		if !room {
			out.limitReached.Store(true)
			missing = nil
		}
	}
	out.setMapped(missing)
	pd.fitted[cd] = out
	return out, nil
}

// setMapped sets the sensors that the decoder maps, with the types it maps them to.
func (cd *cachedDevice) setMapped(missing []Sensor) {
	all := maps.Clone(*cd.sensors.Load())
	if all == nil {
		all = make(map[string]*Sensor, len(missing))
	}
	for i := range missing {
		if cd.Device.ID == "" {
			missing[i].ID = "" // the device has no id yet
		}
		all[missing[i].Key] = &missing[i]
	}
	mapped := make(map[string]*Sensor, len(cd.decoder.Sensors))
	for _, m := range cd.decoder.Sensors {
		if have := all[m.Key]; have != nil {
			typed := *have
			typed.SensorTypeID = m.SensorTypeID
			mapped[m.Key] = &typed
		}
	}
	cd.mapped.Store(&mapped)
}
