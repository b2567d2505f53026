package iot

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Preview computes the changes that ingesting frames again would make, and stores nothing. The caller
// must pass frames in the order of their arrival. Not safe for concurrent use.
type Preview struct {
	s *Service
	// seenByKey holds the frames of the preview by deduplication key, one for each span.
	seenByKey map[string][]FrameKey
}

// PreviewedFrame is the expected result of ingesting a frame, compared with the
// stored readings.
type PreviewedFrame struct {
	// Outcome is the outcome that Ingest would return. Its Points have no sensor and no device if
	// the device does not exist yet.
	Outcome
	Identifier string
	Kind       decoders.FrameKind
	Time       time.Time // time of the readings; zero for a frame that is not decoded
	// Device is the device of the frame. It has no ID if Ingest would create it, and no identifier if
	// there is no device.
	Device   Device
	Decoder  Decoder // decoder of the device
	Readings []Difference
	Stored   *StoredFrame // the frame for rules; nil if rules would not evaluate it
}

// NewPreview returns an empty preview.
func (s *Service) NewPreview() *Preview {
	return &Preview{s: s, seenByKey: make(map[string][]FrameKey)}
}

// Frames previews a batch. An error means that a back end is unavailable.
func (p *Preview) Frames(ctx context.Context, arrivals []Arrival) ([]PreviewedFrame, error) {
	b := newBatch(arrivals)
	for _, w := range b.frames {
		w.preview, w.DecodeNow = true, true
	}
	for _, step := range [...]func(context.Context, *frameBatch) error{
		p.s.refresh, p.s.check, p.markDuplicates, p.identify, p.s.decode,
	} {
		if err := step(ctx, b); err != nil {
			return nil, err
		}
	}
	previews := make([]PreviewedFrame, len(b.frames))
	for i, w := range b.frames {
		if w.isAccepted() {
			w.outcome.Points = w.points
		}
		previews[i] = PreviewedFrame{Outcome: w.outcome, Identifier: w.Frame.Identifier, Kind: w.Frame.Kind, Time: w.time}
		if w.device != nil {
			previews[i].Device = w.device.Device
			if c := w.device.decoder; c != nil {
				previews[i].Decoder = c.Decoder
			}
		}
		if w.seenByRules() && w.device.Device.ID != "" {
			stored := w.storedFrame()
			previews[i].Stored = &stored
		}
	}
	return previews, p.s.setDifferences(ctx, b, previews)
}

// markDuplicates marks duplicates like deduplicate, but stores nothing. A frame is a duplicate if another
// record has contained it or if it was in an earlier arrival of this preview.
func (p *Preview) markDuplicates(ctx context.Context, b *frameBatch) error {
	return b.markDuplicates(func(frames []FrameKey) ([]string, error) {
		recordIDs, err := p.s.cache.FirstRecords(ctx, frames, p.s.options.DedupWindow)
		for i, f := range frames[:len(recordIDs)] {
			if recordIDs[i] != "" {
				continue
			}
			key := f.Account.String() + "\x00" + f.Device + "\x00" + f.Dedup
			if n := slices.IndexFunc(p.seenByKey[key], func(seen FrameKey) bool { return f.SameFrame(seen.Time) }); n >= 0 {
				recordIDs[i] = p.seenByKey[key][n].RecordID
				continue
			}
			p.seenByKey[key] = append(p.seenByKey[key], f)
			recordIDs[i] = f.RecordID
		}
		return recordIDs, err
	})
}

// identify finds the device of each frame, or makes the device that Ingest would create.
func (p *Preview) identify(ctx context.Context, b *frameBatch) error {
	devices := p.s.newProvisionalDevices()
	for acct, group := range b.groups {
		records := &accountRecords{acct: acct, cache: p.s.records.account(acct)}
		if _, err := p.s.load(ctx, records, group); err != nil {
			return err
		}
		for _, w := range group {
			if !w.isAccepted() {
				continue
			}
			cd, err := devices.device(ctx, records, w)
			if err != nil {
				return err
			}
			if cd == nil {
				continue // refused
			}
			if w.device, err = devices.matchSensors(ctx, acct, cd); err != nil {
				return err
			}
		}
	}
	return nil
}

// provisionalDevices finds the devices of frames, or makes the devices that Ingest would create,
// without saving them.
type provisionalDevices struct {
	s       *Service
	matched map[*cachedDevice]*cachedDevice // results of matchSensors
	created map[string]*cachedDevice        // devices that do not exist yet, by decoder and identifier
}

func (s *Service) newProvisionalDevices() *provisionalDevices {
	return &provisionalDevices{s: s, matched: make(map[*cachedDevice]*cachedDevice), created: make(map[string]*cachedDevice)}
}

// device returns the frame's device, or the device that Ingest would create.
func (pd *provisionalDevices) device(ctx context.Context, records *accountRecords, w *workItem) (*cachedDevice, error) {
	id := w.Frame.Identifier
	cd := records.cache.device(id)
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
	c, err := pd.s.namedDecoder(ctx, records, w)
	if err != nil || !w.isAccepted() {
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

// matchSensors returns a device with the sensors that it would have after Service.matchSensors.
func (pd *provisionalDevices) matchSensors(ctx context.Context, acct relay.AccountID, cd *cachedDevice) (*cachedDevice, error) {
	if cd.decoder == nil {
		return cd, nil
	}
	if device := pd.matched[cd]; device != nil {
		return device, nil
	}
	sensors := *cd.sensors.Load()
	missing := pd.s.sensorsFor(cd.Device, cd.decoder, sensors)
	matched := &cachedDevice{Device: cd.Device, decoder: cd.decoder, params: cd.params}
	matched.sensors.Store(&sensors)
	if cd.Device.ID != "" || cd.decoder.ID != "" { // otherwise a source is tried without a store
		hasRoom, err := pd.s.hasRoomForSensors(ctx, acct, len(missing))
		if err != nil {
			return nil, err
		}
		if !hasRoom {
			matched.limitReached.Store(true)
			missing = nil
		}
	}
	// Select the mapped sensors, with the types of the mapping.
	mapped := make(map[string]*Sensor, len(cd.decoder.Sensors))
	for _, m := range cd.decoder.Sensors {
		if sensor := sensors[m.Key]; sensor != nil {
			typed := *sensor
			typed.SensorTypeID = m.SensorTypeID
			mapped[m.Key] = &typed
		}
	}
	for i := range missing {
		if cd.Device.ID == "" {
			missing[i].ID = "" // a sensor's ID derives from the device's ID
		}
		mapped[missing[i].Key] = &missing[i]
	}
	matched.mapped.Store(&mapped)
	pd.matched[cd] = matched
	return matched, nil
}
