package iot

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

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

// SensorChange has the changeable fields of a sensor; nil fields stay.
type SensorChange struct {
	Name          *string
	Slope, Offset *float64
	RetentionDays *int
}

// ChangeSensor applies a change, which the device's next frame follows.
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
	idOf := func(p Point) pointID { return pointID{p.SensorID, p.Time.UnixNano()} }
	anew := make(map[pointID]bool)
	for _, p := range points {
		if p.Type == now[p.SensorID] {
			anew[idOf(p)] = true
		}
	}
	return slices.DeleteFunc(points, func(p Point) bool {
		kind, ok := now[p.SensorID]
		return ok && p.Type != kind && anew[idOf(p)]
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
		i := slices.IndexFunc(latest, func(p Point) bool { return p.SensorID == sensor.ID })
		if i < 0 || latest[i].Time.Before(sensor.Since(now)) {
			continue
		}
		p := latest[i]
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

type sensorTypes struct {
	version int64
	types   map[string]SensorType
}

// Overview is the part of a device's records that all queries of readings need.
type Overview struct {
	Sensors []Sensor
	// TypesVersion changes whenever a sensor type does.
	TypesVersion int64
}

// Points returns readings of a device, newest first. From and to are inclusive and may
// be zero; limit is at most 1000.
func (s *Service) Points(ctx context.Context, acct relay.AccountID, deviceID string, start, end time.Time, limit int) ([]Point, error) {
	sensors, err := s.store.Sensors(ctx, acct, deviceID)
	if err != nil || len(sensors) == 0 {
		return nil, err
	}
	points, err := s.readings.Readings(ctx, Query{
		Account: acct, DeviceID: deviceID, Types: typesOf(sensors), From: start, To: end, Limit: limit,
	})
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "iot: readings: %w", err)
	}
	return current(points, sensors), nil
}

// SensorTypes returns the sensor types by id.
func (s *Service) SensorTypes(ctx context.Context) (map[string]SensorType, error) {
	return s.store.SensorTypes(ctx)
}

// latest returns the newest point of each of a device's sensors from the cache,
// or else from the reading store, and fills the cache. Points from the cache have
// no key.
func (s *Service) latest(ctx context.Context, acct relay.AccountID, deviceID string, sensors []Sensor) ([]Point, error) {
	if len(sensors) == 0 {
		return nil, nil
	}
	asOf := s.options.Now()
	var points []Point
	var filled time.Time
	ok, err := s.optional.call(ctx, func() (err error) {
		points, filled, err = s.cache.Latest(ctx, acct, deviceID)
		return err
	})
	if err != nil || ok && s.optional.fresh(filled, latestFresh) {
		return points, err
	}
	stored, err := s.readings.Latest(ctx, acct, deviceID, typesOf(sensors))
	if err != nil {
		if ok && s.optional.fresh(filled, latestKept) {
			return points, nil
		}
		return nil, relay.Errorf(relay.KindUnavailable, "iot: device %s: latest values: %w", deviceID, err)
	}
	// One point of each sensor stays. Of points of one time, the one of the sensor's present
	// type counts.
	types := make(map[string]string, len(sensors))
	for _, sensor := range sensors {
		types[sensor.ID] = sensor.SensorTypeID
	}
	former := func(p Point) int {
		if p.Type == types[p.SensorID] {
			return 0
		}
		return 1
	}
	slices.SortFunc(stored, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.SensorID, b.SensorID), b.Time.Compare(a.Time), former(a)-former(b))
	})
	stored = slices.CompactFunc(stored, func(a, b Point) bool { return a.SensorID == b.SensorID })
	_, err = s.optional.call(ctx, func() error { return s.cache.FillLatest(ctx, acct, deviceID, stored, asOf) })
	return stored, err
}

// typeCache caches the sensor types that devices had at the last query of their
// readings. Dashboards query the same devices repeatedly; with the cached types the
// readings are fetched concurrently with the records, which then show whether the
// types are still current.
type typeCache struct {
	mu    sync.Mutex
	types map[Ref][]string // by device
}

const maxCachedTypes = 50_000

type queryResult[T any] struct {
	rows []T
	err  error
}

// withRecords loads the records of a device and queries the reading store for rows
// of its sensors' types; concurrently if the types are cached. It returns
// relay.KindNotFound if there is no such device, and no rows if it has no sensors.
func withRecords[T any](ctx context.Context, s *Service, acct relay.AccountID, deviceID string,
	query func(ctx context.Context, types []string) ([]T, error),
) (rows []T, o Overview, types map[string]SensorType, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	device, c := Ref{acct, deviceID}, &s.sensorTypesOf
	c.mu.Lock()
	cachedTypes := c.types[device]
	c.mu.Unlock()
	prefetched := make(chan queryResult[T], 1)
	if len(cachedTypes) > 0 {
		go func() {
			var result queryResult[T]
			result.err = relay.Recovered("readings of device "+deviceID, func() (err error) {
				result.rows, err = query(ctx, cachedTypes)
				return err
			})
			prefetched <- result
		}()
	}
	if o, types, err = s.overview(ctx, acct, deviceID); err != nil {
		return nil, o, nil, err
	}
	names := typesOf(o.Sensors)
	switch {
	case len(names) == 0:
		return nil, o, types, nil
	case slices.Equal(names, cachedTypes):
		result := <-prefetched
		return result.rows, o, types, result.err
	}
	c.mu.Lock()
	if c.types == nil || len(c.types) >= maxCachedTypes {
		c.types = make(map[Ref][]string)
	}
	c.types[device] = names
	c.mu.Unlock()
	rows, err = query(ctx, names)
	return rows, o, types, err
}
