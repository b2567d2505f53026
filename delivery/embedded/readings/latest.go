package readings

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// selectLatest scans the primary key backwards for each sensor of a device: at once for
// a sensor that still reports, through at most a day's readings for one that stopped.
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
		return nil, s.failed("latest", err)
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

// devicesAtOnce is the number of devices that one statement names.
const devicesAtOnce = 500

// LastStored returns the time of each device's newest point or uplink.
func (s *Store) LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error) {
	latest := make(map[string]time.Time, len(deviceIDs))
	for chunk := range slices.Chunk(deviceIDs, devicesAtOnce) {
		if err := s.lastStored(ctx, acct, chunk, latest); err != nil {
			return nil, s.failed("last stored", err)
		}
	}
	return latest, nil
}

func (s *Store) lastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string, latest map[string]time.Time) error {
	list, args := list([]any{int64(acct)}, deviceIDs)
	return s.eachRow(ctx, func(rows *sql.Rows) error {
		var id string
		var ns int64
		err := rows.Scan(&id, &ns)
		if ns > unset {
			latest[id] = time.Unix(0, ns).UTC()
		}
		return err
	}, selectStored+list, args...)
}

// none is selectStored's value for a device without readings.
const unset = -1 << 63
