package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// latestTTL is the retention of the latest values of a device after the last change.
const latestTTL = 24 * time.Hour

const latestLabel = "latest values"

// spareFields is the number of fields that a hash may have in addition to the fields that were
// just set. In a longer hash, all but the newest field of each sensor are deleted. Each value has its own field, named
// after the sensor and the time, so that values are set without a comparison and the order of
// two gateways does not matter. Readers use the newest field of each sensor.
const spareFields = 24

// SetLatest stores the newest point of each sensor.
func (c *IoT) SetLatest(ctx context.Context, points []iot.Point) error {
	for chunk := range slices.Chunk(latestByDevice(points), maxPipelined) {
		if err := c.setLatest(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// setLatest sets the fields of devices, and deletes outdated fields from hashes that exceed
// spareFields.
func (c *IoT) setLatest(ctx context.Context, devices []device) error {
	lengths := make([]*redis.IntCmd, len(devices))
	err := c.db.pipeline(ctx, latestLabel, func(p redis.Pipeliner) {
		for i, d := range devices {
			p.HSet(ctx, d.key, d.fields)
			p.Expire(ctx, d.key, latestTTL)
			lengths[i] = p.HLen(ctx, d.key)
		}
	})
	if err != nil {
		return err
	}
	fields := make(map[string]*redis.StringSliceCmd)
	err = c.db.pipeline(ctx, latestLabel, func(p redis.Pipeliner) {
		for i, d := range devices {
			if int(lengths[i].Val()) > len(d.fields)/2+spareFields {
				fields[d.key] = p.HKeys(ctx, d.key)
			}
		}
	})
	if err != nil {
		return err
	}
	return c.db.pipeline(ctx, latestLabel, func(p redis.Pipeliner) {
		for key, names := range fields {
			if old := outdatedFields(names.Val()); len(old) > 0 {
				p.HDel(ctx, key, old...)
			}
		}
	})
}

func outdatedFields(fields []string) (old []string) {
	newest := make(map[string]string, len(fields))
	for _, field := range fields {
		sensor, _, ok := cutField(field)
		if !ok {
			continue
		}
		switch previous := newest[sensor]; {
		case previous == "":
			newest[sensor] = field
		case previous < field: // the times have the same number of digits
			newest[sensor], old = field, append(old, previous)
		default:
			old = append(old, field)
		}
	}
	return old
}

// FillLatest adds points from the reading store and records that all sensors of the device are
// present.
func (c *IoT) FillLatest(ctx context.Context, acct relay.AccountID, deviceID string, points []iot.Point, asOf time.Time) error {
	key := keyLatest(acct, deviceID)
	return c.db.pipeline(ctx, latestLabel+" of "+deviceID, func(p redis.Pipeliner) {
		for i := range points {
			p.HSetNX(ctx, key, latestField(&points[i]), latestValue(&points[i]))
		}
		p.HSet(ctx, key, fieldFilled, asOf.UnixMilli())
		p.Expire(ctx, key, latestTTL)
	})
}

// Latest returns a device's newest point per sensor.
func (c *IoT) Latest(ctx context.Context, acct relay.AccountID, deviceID string) ([]iot.Point, time.Time, error) {
	label := latestLabel + " of " + deviceID
	fields, err := c.db.rdb.HGetAll(ctx, keyLatest(acct, deviceID)).Result()
	if err != nil {
		return nil, time.Time{}, wrap(label, err)
	}
	points, filled, err := decodeLatest(fields)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s: %w", label, err)
	}
	for i := range points {
		points[i].Account, points[i].DeviceID = acct, deviceID
	}
	return points, filled, nil
}

// ForgetDevice deletes the cache entries of a device.
func (c *IoT) ForgetDevice(ctx context.Context, acct relay.AccountID, deviceID string) error {
	return c.db.pipeline(ctx, "device "+deviceID, func(p redis.Pipeliner) {
		p.Del(ctx, keyLatest(acct, deviceID))
		p.ZRem(ctx, keyHeard(acct), deviceID)
		p.ZRem(ctx, keyHeardFilled(acct), deviceID)
	})
}

type device struct {
	key    string
	fields []string // alternating names and values
}

// latestByDevice returns the fields of the newest point of each sensor, by device. If points have
// the same sensor and time, it uses the last one.
func latestByDevice(points []iot.Point) []device {
	newest := make(map[iot.Ref]*iot.Point, len(points)) // by sensor
	for i := range points {
		p := &points[i]
		sensor := iot.Ref{Account: p.Account, ID: p.SensorID}
		if point := newest[sensor]; point == nil || !point.Time.After(p.Time) {
			newest[sensor] = p
		}
	}
	indexes := make(map[iot.Ref]int, len(newest)) // of devices
	var devices []device
	for i := range points {
		p := &points[i]
		if newest[iot.Ref{Account: p.Account, ID: p.SensorID}] != p {
			continue
		}
		ref := iot.Ref{Account: p.Account, ID: p.DeviceID}
		n, ok := indexes[ref]
		if !ok {
			n = len(devices)
			indexes[ref] = n
			devices = append(devices, device{key: keyLatest(p.Account, p.DeviceID)})
		}
		devices[n].fields = append(devices[n].fields, latestField(p), latestValue(p))
	}
	return devices
}

// latestField returns the name of a point's field. The fields of a sensor sort by time.
func latestField(p *iot.Point) string {
	var digits [20]byte
	ns := strconv.AppendInt(digits[:0], max(0, p.Time.UnixNano()), 10)
	return p.SensorID + "|" + "00000000000000000000"[len(ns):] + string(ns)
}

func latestValue(p *iot.Point) string {
	if p.IsText {
		return "t|" + p.Type + "|" + p.Text
	}
	return "n|" + p.Type + "|" + strconv.FormatFloat(p.Value, 'g', -1, 64)
}

func cutField(field string) (sensor, ns string, ok bool) {
	bar := strings.LastIndexByte(field, '|')
	if bar < 0 {
		return "", "", false
	}
	return field[:bar], field[bar+1:], true
}

func decodeLatest(fields map[string]string) (points []iot.Point, filled time.Time, err error) {
	newest := make(map[string]iot.Point)
	for field, value := range fields {
		if field == fieldFilled {
			ms, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, filled, fmt.Errorf("%s %q: %w", field, value, err)
			}
			filled = time.UnixMilli(ms).UTC()
			continue
		}
		p, err := decodePoint(field, value)
		if err != nil {
			return nil, filled, fmt.Errorf("%q %q: %w", field, value, err)
		}
		if point, ok := newest[p.SensorID]; !ok || p.Time.After(point.Time) {
			newest[p.SensorID] = p
		}
	}
	points = make([]iot.Point, 0, len(newest))
	for _, p := range newest {
		points = append(points, p)
	}
	slices.SortFunc(points, func(a, b iot.Point) int { return cmp.Compare(a.SensorID, b.SensorID) })
	return points, filled, nil
}

func decodePoint(field, value string) (p iot.Point, err error) {
	sensor, digits, ok := cutField(field)
	parts := strings.SplitN(value, "|", 3) // ids of sensor types have no bar
	if !ok || len(parts) != 3 {
		return p, errors.New("must have a sensor, a time, a kind, a type and a value")
	}
	ns, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return p, err
	}
	p.SensorID, p.Time, p.Type = sensor, time.Unix(0, ns).UTC(), parts[1]
	if p.IsText = parts[0] == "t"; p.IsText {
		p.Text = parts[2]
		return p, nil
	}
	p.Value, err = strconv.ParseFloat(parts[2], 64)
	return p, err
}
