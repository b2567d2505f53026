package iot

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Point is a stored reading of a sensor. A point overwrites an earlier point with the same account,
// sensor, sensor type and time.
//
// In InfluxDB it is a point of the measurement named after the sensor type,
// with the tags account, device_id, identifier, sensor_id and key and one
// field: value (float) or text (string).
type Point struct {
	Account    relay.AccountID
	Type       string // ID of the sensor type
	DeviceID   string
	Identifier string
	SensorID   string
	Key        string
	Time       time.Time // UTC
	Value      float64   // finite
	Text       string
	IsText     bool
}

// RadioData is the stored radio data of a frame. Missing values are nil.
//
// In InfluxDB it is a point of the measurement uplink with the tags account,
// device_id and identifier.
type RadioData struct {
	Account    relay.AccountID
	DeviceID   string
	Identifier string
	Time       time.Time
	FCnt       *int64
	FPort      *int64
	RSSI       *float64 // dBm, of the best gateway
	SNR        *float64 // dB, of the best gateway
	Gateways   *int64
	Battery    *float64 // percent
	Margin     *float64 // dB, margin of the last downlink
	Latitude   *float64 // degrees, as located by the network
	Longitude  *float64 // degrees
	// Frame means that the radio data belongs to an uplink, not to another post about an uplink, a
	// status or a location.
	Frame bool
	Name  string // name of the device; only with Frame
}

// RadioDetail selects the radio data that is stored. Rules and raw frames always get all radio
// data.
type RadioDetail string

// The details; "" is RadioFull.
const (
	RadioFull RadioDetail = "full"
	// RadioBasic omits port, number of gateways, margin and name.
	RadioBasic RadioDetail = "basic"
	RadioOff   RadioDetail = "off"
)

// reduce returns the part of the radio data of a frame that is stored, or nil.
func (d RadioDetail) reduce(r *RadioData) *RadioData {
	switch {
	case r == nil || d == RadioOff:
		return nil
	case d != RadioBasic:
		return r
	}
	return &RadioData{
		Account: r.Account, DeviceID: r.DeviceID, Identifier: r.Identifier, Time: r.Time, Frame: r.Frame,
		FCnt: r.FCnt, RSSI: r.RSSI, SNR: r.SNR, Battery: r.Battery, Latitude: r.Latitude, Longitude: r.Longitude,
	}
}

// Readings are the points and radio data of one write to a reading store.
type Readings struct {
	Points []Point
	Radio  []RadioData
}

// RefusedItem is a point or radio data that a store refuses permanently, with the reason.
type RefusedItem struct {
	// Point is an index into Readings.Points, or -1. Radio is an index into Readings.Radio, or -1.
	Point, Radio int
	Reason       string
}

// Query selects readings of one device. From and To are inclusive and may be zero. Limit is at most
// MaxReadings; 0 means MaxReadings.
type Query struct {
	Account  relay.AccountID
	DeviceID string
	// Types are the sensor types (measurements) of the device's sensors.
	Types    []string
	From, To time.Time
	Limit    int
}

// InvalidReason returns the reason why stores refuse a point, or "": it has no sensor type, its value is not
// finite, or its time is not in the years 1678 to 2261.
func (p *Point) InvalidReason() string {
	switch {
	case p.Type == "":
		return "no sensor type"
	case !p.IsText && !finiteOrNil(&p.Value):
		return "the value is not a finite number"
	}
	return invalidTime(p.Time)
}

// InvalidReason returns the reason why stores refuse radio data, or "": a value is not finite, or the time is
// not in the years 1678 to 2261.
func (r *RadioData) InvalidReason() string {
	for _, v := range []*float64{r.RSSI, r.SNR, r.Battery, r.Margin, r.Latitude, r.Longitude} {
		if !finiteOrNil(v) {
			return "a value is not a finite number"
		}
	}
	return invalidTime(r.Time)
}

func finiteOrNil(v *float64) bool {
	return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0)
}

// invalidTime returns a reason if the nanoseconds of t since 1970 do not fit into 64 bits, or "".
func invalidTime(t time.Time) string {
	if year := t.UTC().Year(); year < 1678 || year > 2261 {
		return "the time is outside the years 1678 to 2261"
	}
	return ""
}

// ReadingStore stores readings in InfluxDB, or in SQLite in the data directory. Both
// implementations pass the test suite of package iottest.
type ReadingStore interface {
	// Write stores readings. It returns the points and the radio data that the store refuses, and
	// stores the other readings. After an error, the same readings may be written again.
	Write(ctx context.Context, r Readings) ([]RefusedItem, error)

	// Readings returns a device's points, newest first, and in order of sensor ID at the same
	// time.
	Readings(ctx context.Context, q Query) ([]Point, error)

	// Aggregate returns the non-empty buckets of a device's numbers, computed by the store: oldest
	// first, and in order of sensor ID and type at the same time.
	Aggregate(ctx context.Context, q AggregateQuery) ([]Bucket, error)

	// Forget deletes the points of sensors, of any type, that are older than ExpiredPoints.Before. Other
	// writes may run between its steps. It may delete the same points again.
	Forget(ctx context.Context, acct relay.AccountID, old []ExpiredPoints) error

	// Latest returns the newest point of each of a device's sensors, in order of sensor ID. If a
	// sensor has points of several types at that time, Latest may return all of them. types are the
	// possible types of the device's points.
	Latest(ctx context.Context, acct relay.AccountID, deviceID string, types []string) ([]Point, error)

	// LastStored returns the time of each device's newest point or uplink, by device id. It
	// omits devices without points and uplinks.
	LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error)

	// Radio returns the newest radio data of each device since a time, by device ID. Missing values
	// of the newest frame come from earlier frames of the last RadioFrames (RadioData.Complete). It
	// omits devices without radio data.
	Radio(ctx context.Context, acct relay.AccountID, deviceIDs []string, since time.Time) (map[string]RadioData, error)

	// Ping returns an error if the store cannot be written to.
	Ping(ctx context.Context) error
}

// TimeFormat is the format of times in queries and responses, in UTC.
const TimeFormat = time.DateTime

// ReadingRow is a reading in the format of the API.
type ReadingRow struct {
	SensorID      string   `json:"sensor_id"`
	DeviceID      string   `json:"device_id"`
	Key           string   `json:"key"`
	Name          string   `json:"name"` // the name of the sensor type
	Value         *float64 `json:"value"`
	Text          *string  `json:"text,omitempty"` // nil for a number
	ReadingDate   string   `json:"reading_date"`
	MetricUnits   string   `json:"metric_units"`
	ImperialUnits string   `json:"imperial_units"`
}

// UpdatedSensors is the response to a post of readings.
type UpdatedSensors struct {
	Sensors []ReadingRow `json:"data"` // the updated sensors
	// Notes lists the unused data of the post and the reasons why sensors were not updated.
	Notes decoders.Notes `json:"notes,omitempty"`
}

// ReadingRows converts points to rows with the names and units of their sensor types.
func ReadingRows(points []Point, types map[string]SensorType, u Units) []ReadingRow {
	rows := make([]ReadingRow, len(points))
	for i := range points {
		p, r := &points[i], &rows[i]
		t := sensorTypeOf(types, p.Type)
		r.SensorID, r.DeviceID, r.Key, r.Name = p.SensorID, p.DeviceID, p.Key, t.Name
		r.MetricUnits, r.ImperialUnits = t.MetricUnits, t.ImperialUnits
		r.ReadingDate = p.Time.UTC().Format(TimeFormat)
		if p.IsText {
			r.Text = &p.Text
		} else {
			r.Value = numberOrNil(u.convert(t, p.Value))
		}
	}
	return rows
}

// numberOrNil returns a pointer to a number, or nil if the number is not finite.
func numberOrNil(v float64, finite bool) *float64 {
	if !finite {
		return nil
	}
	return &v
}

// Units are the units of returned values. Readings are stored in metric units. A sensor type with
// imperial units has a conversion. Values of other types are the same in metric and imperial units.
type Units string

// The units.
const (
	Metric   Units = "metric"
	Imperial Units = "imperial"
)

// ParseUnits parses the units of a request. Empty means metric.
func ParseUnits(s string) (Units, bool) {
	switch u := Units(s); u {
	case "":
		return Metric, true
	case Metric, Imperial:
		return u, true
	}
	return Metric, false
}

// ToImperial converts a value, metric × ImperialSlope + ImperialOffset, and rounds it to 12
// digits. A slope of 0 means 1. It does not change values of a type without imperial units or
// without a conversion.
func (t SensorType) ToImperial(v float64) float64 {
	slope := cmp.Or(t.ImperialSlope, 1)
	if t.ImperialUnits == "" || slope == 1 && t.ImperialOffset == 0 {
		return v
	}
	return round(v*slope + t.ImperialOffset)
}

// convert converts a metric value to the units and reports whether it is finite.
func (u Units) convert(t SensorType, v float64) (converted float64, finite bool) {
	if u == Imperial {
		v = t.ToImperial(v)
	}
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// average converts an average and rounds it to 12 digits, because its last digits depend on the order
// in which a store adds the values.
func (u Units) average(t SensorType, v float64) (converted float64, finite bool) {
	v, finite = u.convert(t, v)
	return round(v), finite
}

// round rounds a number to 12 digits. It does not change a number that would become infinite.
func round(v float64) float64 {
	if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 11, 64), 64); err == nil {
		return r
	}
	return v
}

// sensorTypeOf returns a sensor type. The name of an unknown sensor type is its ID.
func sensorTypeOf(types map[string]SensorType, id string) SensorType {
	t := types[id]
	if t.Name == "" {
		t.Name = id
	}
	return t
}
