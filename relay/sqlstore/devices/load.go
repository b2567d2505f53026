package devices

import (
	"context"
	"database/sql"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

// loadDevices answers each device that is there and, after it, its sensors. The
// account is a column of the batch: as a parameter it would have the planner read
// all of the account's rows.
const loadDevices = `
WITH found AS MATERIALIZED (
  SELECT batch.n AS place, device.account, device.id, device.doc
  FROM batch JOIN device ON device.account = batch.account AND device.identifier = batch.identifier
)
SELECT place, 0 AS sensor, 0 AS created, '' AS key, doc FROM found
UNION ALL
SELECT found.place, 1, sensor.created, sensor.key, sensor.doc
FROM found JOIN sensor ON sensor.account = found.account AND sensor.device = found.id
ORDER BY 1, 2, 3, 4`

// loaded is a row of loadDevices.
type loaded struct {
	place  int
	sensor bool
	doc    []byte
}

func (l *loaded) scan(row *sql.Rows) error {
	var created, key sql.RawBytes
	return row.Scan(&l.place, &l.sensor, &created, &key, &l.doc)
}

// Load returns the devices that are there among the identifiers, with their
// sensors.
func (s *Store) Load(ctx context.Context, acct account.ID, identifiers []string) (map[string]iot.Known, error) {
	if len(identifiers) == 0 {
		return nil, nil
	}
	names := sqlstore.NewBatch("account bigint, identifier text")
	for _, identifier := range identifiers {
		names.Add(int64(acct), identifier)
	}
	rows, err := sqlstore.List(ctx, s.db, "devices", loadDevices, func(row *sql.Rows, l *loaded) error { return l.scan(row) }, names)
	if err != nil {
		return nil, err
	}
	out := make(map[string]iot.Known, len(identifiers))
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].place == rows[0].place {
			n++
		}
		if out[identifiers[rows[0].place-1]], err = knownFrom(rows[:n]); err != nil {
			return nil, err
		}
		rows = rows[n:]
	}
	return out, nil
}

// knownFrom reads a device and its sensors.
func knownFrom(rows []loaded) (k iot.Known, err error) {
	if err := sqlstore.Decode(rows[0].doc, &k.Device); err != nil {
		return k, sqlstore.Wrap("device", err)
	}
	k.Sensors = make([]iot.Sensor, len(rows)-1)
	for i, row := range rows[1:] {
		if err := sqlstore.Decode(row.doc, &k.Sensors[i]); err != nil {
			return k, sqlstore.Wrap("sensor of "+k.Device.ID, err)
		}
	}
	return k, nil
}

// overview answers a row for each sensor, one with an empty document if the
// device has none.
const overview = `
SELECT COALESCE((SELECT n FROM version WHERE name = $1), 0), COALESCE(sensor.doc, '')
FROM device LEFT JOIN sensor ON sensor.account = device.account AND sensor.device = device.id
WHERE device.account = $2 AND device.id = $3
ORDER BY sensor.created, sensor.key`

// Overview returns a device's sensors and the version of the sensor types.
func (s *Store) Overview(ctx context.Context, acct account.ID, deviceID string) (o iot.Overview, err error) {
	noun := "device " + deviceID
	docs, err := sqlstore.List(ctx, s.db, noun, overview, func(row *sql.Rows, doc *[]byte) error {
		return row.Scan(&o.TypesVersion, doc)
	}, typesVersion, int64(acct), deviceID)
	if err != nil || len(docs) == 0 {
		return o, missing(deviceID, err)
	}
	for _, doc := range docs {
		if len(doc) == 0 {
			break
		}
		var sensor iot.Sensor
		if err := sqlstore.Decode(doc, &sensor); err != nil {
			return o, sqlstore.Wrap(noun, err)
		}
		o.Sensors = append(o.Sensors, sensor)
	}
	return o, nil
}
