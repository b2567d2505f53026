package devices

import (
	"context"

	"github.com/penstock/penstock/relay"
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

func (l *loaded) fields() []any { return []any{&l.place, &l.sensor, new(any), new(any), &l.doc} }

// Load returns the devices that are there among the identifiers, with their
// sensors.
func (s *Store) Load(ctx context.Context, acct account.ID, identifiers []string) (map[string]iot.Known, error) {
	names := sqlstore.BatchOf("account bigint, identifier text", identifiers, func(one *string) []any { return []any{acct, one} })
	rows, err := sqlstore.List(ctx, s.db, "devices", loadDevices, sqlstore.Into((*loaded).fields), names)
	if err != nil {
		return nil, err
	}
	known := make([]iot.Known, len(identifiers))
	for _, row := range rows {
		k := &known[row.place-1]
		if row.sensor {
			k.Sensors = append(k.Sensors, iot.Sensor{})
			err = sqlstore.Decode(row.doc, &k.Sensors[len(k.Sensors)-1])
		} else {
			k.Sensors = []iot.Sensor{}
			err = sqlstore.Decode(row.doc, &k.Device)
		}
		if err != nil {
			return nil, sqlstore.Wrap("device "+identifiers[row.place-1], err)
		}
	}
	out := make(map[string]iot.Known, len(identifiers))
	for i, k := range known {
		if k.Sensors != nil { // else it is not there
			out[identifiers[i]] = k
		}
	}
	return out, nil
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
	sensors, err := sqlstore.List(ctx, s.db, noun, overview, sqlstore.Into(func(sensor *iot.Sensor) []any {
		return []any{&o.TypesVersion, sqlstore.JSON(sensor)}
	}), typesVersion, acct, deviceID)
	if err == nil && len(sensors) == 0 {
		err = relay.Errorf(relay.KindNotFound, "%s: not found", noun)
	}
	if err == nil && sensors[0].ID != "" {
		o.Sensors = sensors
	}
	return o, err
}
