package readings

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
)

// MaxReadings is the maximum number of points that a query returns.
const MaxReadings = 1000

// selectReadings scans the primary key backwards and stops at the limit; it sorts only
// readings of equal times.
const selectReadings = `
SELECT label.type, label.identifier, sensor.name, label.key, reading.at, reading.value, reading.text
FROM device
JOIN reading ON reading.device = device.id
JOIN sensor ON sensor.id = reading.sensor
JOIN label ON label.id = reading.label
WHERE device.account = ? AND device.name = ? AND reading.at BETWEEN ? AND ?`

// Readings returns a device's points, newest first, and by sensor id for equal times. A query
// without types returns every type.
func (s *Store) Readings(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	text, args := query(q)
	points, err := s.points(ctx, q, text, args...)
	if err != nil {
		return nil, s.wrapError("query", err)
	}
	return points, nil
}

func (s *Store) points(ctx context.Context, q iot.Query, text string, args ...any) ([]iot.Point, error) {
	var points []iot.Point
	err := s.eachRow(ctx, func(rows *sql.Rows) error {
		p := iot.Point{Account: q.Account, DeviceID: q.DeviceID}
		var ns int64
		var value sql.NullFloat64
		var text sql.NullString
		err := rows.Scan(&p.Type, &p.Identifier, &p.SensorID, &p.Key, &ns, &value, &text)
		p.Time, p.Value, p.Text, p.IsText = time.Unix(0, ns).UTC(), value.Float64, text.String, text.Valid
		points = append(points, p)
		return err
	}, text, args...)
	return points, err
}

func query(q iot.Query) (string, []any) {
	limit := q.Limit
	if limit <= 0 || limit > MaxReadings {
		limit = MaxReadings
	}
	text, args := withTypes(q, selectReadings, rangeArgs(q))
	return text + " ORDER BY reading.at DESC, sensor.name LIMIT ?", append(args, limit)
}

// withTypes adds the condition that the type of a label is among those of a query.
func withTypes(q iot.Query, text string, args []any) (string, []any) {
	if len(q.Types) == 0 {
		return text, args
	}
	list, args := appendList(args, q.Types)
	return text + " AND label.type IN " + list, args
}

// rangeArgs returns the arguments that select the device and the range of a query.
func rangeArgs(q iot.Query) []any {
	return []any{int64(q.Account), q.DeviceID, nanoseconds(q.From, math.MinInt64), nanoseconds(q.To, math.MaxInt64)}
}

// nanoseconds returns the stored form of a bound, or unset for the zero time.
func nanoseconds(t time.Time, unset int64) int64 {
	if t.IsZero() {
		return unset
	}
	return db.Nanos(t)
}

// selectLatest scans the primary key backwards for each sensor of a device. For a sensor that
// still reports, the scan ends after a few entries. For a sensor that stopped, the scan covers at
// most a day's readings.
const selectLatest = `
SELECT label.type, label.identifier, sensor.name, label.key, reading.at, reading.value, reading.text
FROM device
JOIN sensor ON sensor.device = device.id
JOIN newest ON newest.sensor = sensor.id
JOIN reading ON reading.device = device.id AND reading.sensor = sensor.id AND reading.at = (
	SELECT r.at FROM reading r
	WHERE r.device = device.id AND r.sensor = sensor.id AND r.at BETWEEN newest.at AND newest.at + ?
	ORDER BY r.at DESC LIMIT 1)
JOIN label ON label.id = reading.label
WHERE device.account = ? AND device.name = ?
ORDER BY sensor.name`

// Latest returns the newest point of each of a device's sensors, of any type.
func (s *Store) Latest(ctx context.Context, acct relay.AccountID, deviceID string, _ []string) ([]iot.Point, error) {
	points, err := s.points(ctx, iot.Query{Account: acct, DeviceID: deviceID}, selectLatest, int64(newestSpan), int64(acct), deviceID)
	if err != nil {
		return nil, s.wrapError("latest", err)
	}
	return points, nil
}

// selectStored is completed with the names of devices. Each maximum is the last entry
// of a primary key.
const selectStored = `
SELECT device.name, max(
	coalesce((SELECT max(at) FROM reading WHERE reading.device = device.id), -9223372036854775808),
	coalesce((SELECT max(at) FROM uplink WHERE uplink.device = device.id), -9223372036854775808))
FROM device
WHERE device.account = ? AND device.name IN `

// devicesPerStatement is the number of devices that one statement names.
const devicesPerStatement = 500

// LastStored returns the time of each device's newest point or uplink.
func (s *Store) LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error) {
	latest := make(map[string]time.Time, len(deviceIDs))
	for chunk := range slices.Chunk(deviceIDs, devicesPerStatement) {
		list, args := appendList([]any{int64(acct)}, chunk)
		err := s.eachRow(ctx, func(rows *sql.Rows) error {
			var id string
			var ns int64
			err := rows.Scan(&id, &ns)
			if ns > math.MinInt64 { // MinInt64 is the time of a device without readings
				latest[id] = time.Unix(0, ns).UTC()
			}
			return err
		}, selectStored+list, args...)
		if err != nil {
			return nil, s.wrapError("last stored", err)
		}
	}
	return latest, nil
}

// selectRadio is completed with the names of devices. It reads the last entries of each
// device in the primary key.
const selectRadio = `
SELECT device.name, u.at, u.rssi, u.snr, u.gateways, u.battery, u.latitude, u.longitude
FROM device JOIN uplink u ON u.device = device.id AND u.at IN (
	SELECT at FROM uplink WHERE uplink.device = device.id AND at >= ? ORDER BY at DESC LIMIT ?)
WHERE device.account = ? AND device.name IN %s
ORDER BY device.name, u.at DESC`

// Radio returns the newest radio data of each device.
func (s *Store) Radio(ctx context.Context, acct relay.AccountID, deviceIDs []string, since time.Time) (map[string]iot.RadioData, error) {
	latest := make(map[string]iot.RadioData, len(deviceIDs))
	for chunk := range slices.Chunk(deviceIDs, devicesPerStatement) {
		list, args := appendList([]any{since.UnixNano(), iot.RadioFrames, int64(acct)}, chunk)
		err := s.eachRow(ctx, func(rows *sql.Rows) error {
			u := iot.RadioData{Account: acct}
			var ns int64
			if err := rows.Scan(&u.DeviceID, &ns, &u.RSSI, &u.SNR, &u.Gateways, &u.Battery, &u.Latitude, &u.Longitude); err != nil {
				return err
			}
			u.Time = time.Unix(0, ns).UTC()
			newest := latest[u.DeviceID]
			newest.Complete(u)
			latest[u.DeviceID] = newest
			return nil
		}, fmt.Sprintf(selectRadio, list), args...)
		if err != nil {
			return nil, s.wrapError("radio data", err)
		}
	}
	return latest, nil
}
