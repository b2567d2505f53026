package iot

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// MaxReadings is the largest number of readings in a response.
const MaxReadings = 1000

// Devices returns the account's devices in order of creation.
func (s *Service) Devices(ctx context.Context, acct relay.AccountID) ([]Device, error) {
	devices, err := s.store.Devices(ctx, acct)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	heard, err := s.lastHeardTimes(ctx, acct, ids)
	for i := range devices {
		devices[i].LastSeen = heard[devices[i].ID]
	}
	return devices, err
}

// Device returns a device of the account.
func (s *Service) Device(ctx context.Context, acct relay.AccountID, id string) (Device, error) {
	d, err := s.store.Device(ctx, acct, id)
	return s.withLastSeen(ctx, acct, d, err)
}

// DeviceByIdentifier returns the device with an identifier. A devEUI or MAC address may be in any case
// and have separators.
func (s *Service) DeviceByIdentifier(ctx context.Context, acct relay.AccountID, identifier string) (Device, error) {
	normalized, _ := NormalizeIdentifier(identifier)
	d, err := s.store.DeviceByIdentifier(ctx, acct, normalized)
	return s.withLastSeen(ctx, acct, d, err)
}

// Sensors returns the sensors of a device whose name or key contains search, in any case. It returns
// relay.KindNotFound if the account has no such device.
func (s *Service) Sensors(ctx context.Context, acct relay.AccountID, deviceID, search string) ([]Sensor, error) {
	sensors, err := s.store.Sensors(ctx, acct, deviceID)
	search = strings.ToLower(search)
	return slices.DeleteFunc(sensors, func(sensor Sensor) bool {
		return !strings.Contains(strings.ToLower(sensor.Name), search) && !strings.Contains(strings.ToLower(sensor.Key), search)
	}), err
}

// SensorChange has the changeable fields of a sensor. Nil fields do not change.
type SensorChange struct {
	Name          *string
	Slope, Offset *float64
	RetentionDays *int
}

// ChangeSensor applies a change, which takes effect with the device's next frame.
func (s *Service) ChangeSensor(ctx context.Context, acct relay.AccountID, sensorID string, c SensorChange) (Sensor, error) {
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
	if err := p.Err(); err != nil {
		return Sensor{}, err
	}
	sensors, err := s.store.Sensors(ctx, acct, deviceOf(sensorID))
	if err != nil {
		return Sensor{}, err
	}
	i := slices.IndexFunc(sensors, func(sensor Sensor) bool { return sensor.ID == sensorID })
	if i < 0 {
		return Sensor{}, relay.Errorf(relay.KindNotFound, "sensor %s", sensorID)
	}
	return s.store.ChangeSensor(ctx, acct, sensors[i].DeviceID, sensors[i].Key, func(sensor *Sensor) error {
		relay.Assign(&sensor.Name, c.Name)
		relay.Assign(&sensor.Slope, c.Slope)
		relay.Assign(&sensor.Offset, c.Offset)
		relay.Assign(&sensor.RetentionDays, c.RetentionDays)
		sensor.UpdatedAt = s.options.Now().UTC()
		return nil
	})
}

// Readings returns a device's readings, newest first.
func (s *Service) Readings(ctx context.Context, q Query, u Units) ([]ReadingRow, error) {
	sensors, types, err := s.sensorsAndTypes(ctx, q.Account, q.DeviceID)
	if err != nil || len(sensors) == 0 {
		return []ReadingRow{}, err
	}
	q.Types = typesOf(sensors)
	points, err := s.readings.Readings(ctx, q)
	if err != nil {
		return nil, err
	}
	return ReadingRows(withoutFormerTypes(points, sensors), types, u), nil
}

func (s *Service) sensorsAndTypes(ctx context.Context, acct relay.AccountID, deviceID string) ([]Sensor, map[string]SensorType, error) {
	sensors, err := s.store.Sensors(ctx, acct, deviceID)
	if err != nil {
		return nil, nil, err
	}
	types, err := s.store.SensorTypes(ctx)
	return sensors, types, err
}

// withoutFormerTypes removes the points of a sensor's former types if a point of its current type has
// the same time. A replay stores readings again under the current type.
func withoutFormerTypes(points []Point, sensors []Sensor) []Point {
	types := make(map[string]string) // current type by sensor, of sensors that have former types
	for _, sensor := range sensors {
		if len(sensor.Former) > 0 {
			types[sensor.ID] = sensor.SensorTypeID
		}
	}
	if len(types) == 0 {
		return points
	}
	idOf := func(p Point) pointID { return pointID{p.SensorID, p.Time.UnixNano()} }
	hasCurrent := make(map[pointID]bool)
	for _, p := range points {
		if p.Type == types[p.SensorID] {
			hasCurrent[idOf(p)] = true
		}
	}
	return slices.DeleteFunc(points, func(p Point) bool {
		typeID, ok := types[p.SensorID]
		return ok && p.Type != typeID && hasCurrent[idOf(p)]
	})
}

func typesOf(sensors []Sensor) []string {
	types := make([]string, 0, len(sensors))
	for _, sensor := range sensors {
		types = append(append(types, sensor.SensorTypeID), sensor.Former...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// Latest returns the newest reading of each of a device's sensors. It omits readings that are older
// than the sensor's retention.
func (s *Service) Latest(ctx context.Context, acct relay.AccountID, deviceID string, u Units) ([]ReadingRow, error) {
	sensors, types, err := s.sensorsAndTypes(ctx, acct, deviceID)
	if err != nil {
		return nil, err
	}
	latest, err := s.latest(ctx, acct, deviceID, sensors)
	if err != nil {
		return nil, err
	}
	now := s.options.Now()
	points := make([]Point, 0, len(latest))
	for _, sensor := range sensors {
		i := slices.IndexFunc(latest, func(p Point) bool { return p.SensorID == sensor.ID })
		if i < 0 || latest[i].Time.Before(sensor.RetentionStart(now)) {
			continue
		}
		p := latest[i]
		p.Key = sensor.Key
		points = append(points, p)
	}
	return ReadingRows(points, types, u), nil
}

// Points returns readings of a device, newest first. start and end are inclusive and may be zero. limit
// is at most MaxReadings. A device that does not exist has no readings.
func (s *Service) Points(ctx context.Context, acct relay.AccountID, deviceID string, start, end time.Time, limit int) ([]Point, error) {
	sensors, err := db.OrZero(s.store.Sensors(ctx, acct, deviceID))
	if err != nil || len(sensors) == 0 {
		return nil, err
	}
	points, err := s.readings.Readings(ctx, Query{
		Account: acct, DeviceID: deviceID, Types: typesOf(sensors), From: start, To: end, Limit: limit,
	})
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "iot: readings: %w", err)
	}
	return withoutFormerTypes(points, sensors), nil
}

// SensorTypes returns the sensor types by id.
func (s *Service) SensorTypes(ctx context.Context) (map[string]SensorType, error) {
	return s.store.SensorTypes(ctx)
}

// latest returns the newest point of each of a device's sensors, from the cache if its points are
// fresh. Otherwise it reads the reading store and fills the cache. Points from the cache have no key.
func (s *Service) latest(ctx context.Context, acct relay.AccountID, deviceID string, sensors []Sensor) ([]Point, error) {
	if len(sensors) == 0 {
		return nil, nil
	}
	asOf := s.options.Now()
	var points []Point
	var filledAt time.Time
	ok, err := s.optional.call(ctx, func() (err error) {
		points, filledAt, err = s.cache.Latest(ctx, acct, deviceID)
		return err
	})
	if err != nil || ok && s.optional.isFresh(filledAt, latestMaxAge) {
		return points, err
	}
	stored, err := s.readings.Latest(ctx, acct, deviceID, typesOf(sensors))
	if err != nil {
		if ok && s.optional.isFresh(filledAt, latestFallbackAge) {
			return points, nil
		}
		return nil, relay.Errorf(relay.KindUnavailable, "iot: device %s: latest values: %w", deviceID, err)
	}
	// Keep one point of each sensor. At the same time, the point with the sensor's current type
	// comes first.
	types := make(map[string]string, len(sensors))
	for _, sensor := range sensors {
		types[sensor.ID] = sensor.SensorTypeID
	}
	typeRank := func(p *Point) int {
		if p.Type == types[p.SensorID] {
			return 0
		}
		return 1
	}
	slices.SortFunc(stored, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.SensorID, b.SensorID), b.Time.Compare(a.Time), typeRank(&a)-typeRank(&b))
	})
	stored = slices.CompactFunc(stored, func(a, b Point) bool { return a.SensorID == b.SensorID })
	_, err = s.optional.call(ctx, func() error { return s.cache.FillLatest(ctx, acct, deviceID, stored, asOf) })
	return stored, err
}
