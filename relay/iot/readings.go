package iot

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
)

// MaxReadings is the most readings one answer holds.
const MaxReadings = 1000

// Devices returns the account's devices in order of creation.
func (s *Service) Devices(ctx context.Context, acct relay.AccountID) ([]Device, error) {
	devices, err := s.store.Devices(ctx, acct)
	if err != nil {
		return nil, err
	}
	return devices, s.lastSeen(ctx, acct, devices)
}

// Device returns a device of the account.
func (s *Service) Device(ctx context.Context, acct relay.AccountID, id string) (Device, error) {
	d, err := s.store.Device(ctx, acct, id)
	return s.oneSeen(ctx, acct, d, err)
}

// DeviceByIdentifier returns the device with a devEUI, MAC address or other
// identifier, in any case and with separators.
func (s *Service) DeviceByIdentifier(ctx context.Context, acct relay.AccountID, identifier string) (Device, error) {
	normal, _ := NormalizeIdentifier(identifier)
	d, err := s.store.DeviceByIdentifier(ctx, acct, normal)
	return s.oneSeen(ctx, acct, d, err)
}

// Sensors returns a device's sensors; search keeps those whose name or key
// holds it, in any case.
func (s *Service) Sensors(ctx context.Context, acct relay.AccountID, deviceID, search string) ([]Sensor, error) {
	if _, err := s.store.Device(ctx, acct, deviceID); err != nil {
		return nil, err
	}
	sensors, err := s.store.Sensors(ctx, acct, deviceID)
	search = strings.ToLower(search)
	return slices.DeleteFunc(sensors, func(have Sensor) bool {
		return !strings.Contains(strings.ToLower(have.Name), search) && !strings.Contains(strings.ToLower(have.Key), search)
	}), err
}

// SensorChange is what may change in a sensor; nil fields stay.
type SensorChange struct {
	Name          *string
	Slope, Offset *float64
	RetentionDays *int
}

// ChangeSensor applies a change, which the device's next frame follows.
func (s *Service) ChangeSensor(ctx context.Context, acct relay.AccountID, sensorID string, c SensorChange) (Sensor, error) {
	if err := c.check(); err != nil {
		return Sensor{}, err
	}
	sensor, err := s.sensor(ctx, acct, sensorID)
	if err != nil {
		return sensor, err
	}
	return s.store.ChangeSensor(ctx, acct, sensor.DeviceID, sensor.Key, func(sensor *Sensor) error {
		relay.Assign(&sensor.Name, c.Name)
		relay.Assign(&sensor.Slope, c.Slope)
		relay.Assign(&sensor.Offset, c.Offset)
		relay.Assign(&sensor.RetentionDays, c.RetentionDays)
		sensor.UpdatedAt = s.options.Now().UTC()
		return nil
	})
}

func (c SensorChange) check() error {
	p := relay.Problems{}
	if c.Name != nil {
		p.Require("name", *c.Name)
		p.Limit("name", *c.Name, maxName)
	}
	for field, v := range map[string]*float64{"slope": c.Slope, "offset": c.Offset} {
		if !finiteOrNil(v) {
			p.Add(field, "The "+field+" must be a number.")
		}
	}
	if c.RetentionDays != nil && *c.RetentionDays < 0 {
		p.Add("retention_days", "The retention days must be at least 0.")
	}
	return p.Err()
}

func (s *Service) sensor(ctx context.Context, acct relay.AccountID, sensorID string) (Sensor, error) {
	sensors, err := s.store.Sensors(ctx, acct, deviceOf(sensorID))
	if err != nil {
		return Sensor{}, err
	}
	if at := slices.IndexFunc(sensors, func(one Sensor) bool { return one.ID == sensorID }); at >= 0 {
		return sensors[at], nil
	}
	return Sensor{}, relay.Errorf(relay.KindNotFound, "sensor %s", sensorID)
}

// Readings returns a device's readings, newest first.
func (s *Service) Readings(ctx context.Context, q Query, u Units) ([]ReadingRow, error) {
	points, o, types, err := withRecords(ctx, s, q.Account, q.DeviceID, func(ctx context.Context, types []string) ([]Point, error) {
		return s.readings.Readings(ctx, q.ofTypes(types))
	})
	if err != nil {
		return nil, err
	}
	return ReadingRows(current(points, o.Sensors), types, u), nil
}

// current removes the readings that a replay has stored again under the sensor's
// new type: both have the same time, and the newer type counts.
func current(points []Point, sensors []Sensor) []Point {
	now := make(map[string]string) // type by sensor, of those that had others
	for _, sensor := range sensors {
		if len(sensor.Former) > 0 {
			now[sensor.ID] = sensor.SensorTypeID
		}
	}
	if len(now) == 0 {
		return points
	}
	of := func(p Point) pointID { return pointID{p.SensorID, p.Time.UnixNano()} }
	anew := make(map[pointID]bool)
	for _, p := range points {
		if p.Type == now[p.SensorID] {
			anew[of(p)] = true
		}
	}
	return slices.DeleteFunc(points, func(p Point) bool {
		kind, had := now[p.SensorID]
		return had && p.Type != kind && anew[of(p)]
	})
}

func typesOf(sensors []Sensor) []string {
	out := make([]string, 0, len(sensors))
	for _, sensor := range sensors {
		out = append(append(out, sensor.SensorTypeID), sensor.Former...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Latest returns the newest reading of each of a device's sensors, without
// those that have outlived the sensor's retention.
func (s *Service) Latest(ctx context.Context, acct relay.AccountID, deviceID string, u Units) ([]ReadingRow, error) {
	o, types, err := s.overview(ctx, acct, deviceID)
	if err != nil {
		return nil, err
	}
	latest, err := s.latest(ctx, acct, deviceID, o.Sensors)
	if err != nil {
		return nil, err
	}
	now := s.options.Now()
	points := make([]Point, 0, len(latest))
	for _, sensor := range o.Sensors {
		at := slices.IndexFunc(latest, func(p Point) bool { return p.SensorID == sensor.ID })
		if at < 0 || latest[at].Time.Before(sensor.Since(now)) {
			continue
		}
		p := latest[at]
		p.Key = sensor.Key
		points = append(points, p)
	}
	return ReadingRows(points, types, u), nil
}

// overview returns a device's sensors and the sensor types, in one round trip
// as long as no sensor type changes.
func (s *Service) overview(ctx context.Context, acct relay.AccountID, deviceID string) (Overview, map[string]SensorType, error) {
	o, err := s.store.Overview(ctx, acct, deviceID)
	if err != nil {
		return o, nil, err
	}
	if cached := s.types.Load(); cached != nil && cached.version == o.TypesVersion {
		return o, cached.types, nil
	}
	types, err := s.store.SensorTypes(ctx)
	if err != nil {
		return o, nil, err
	}
	s.types.Store(&sensorTypes{version: o.TypesVersion, types: types})
	return o, types, nil
}

// sensorTypes is the cached list of sensor types with its version.
type sensorTypes struct {
	version int64
	types   map[string]SensorType
}
