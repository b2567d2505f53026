package iot

import (
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
)

// TimeFormat is how times are written and read in queries and answers, in UTC.
const TimeFormat = time.DateTime

// ReadingRow is a reading as the API lists it.
type ReadingRow struct {
	SensorID      string   `json:"sensor_id"`
	DeviceID      string   `json:"device_id"`
	Key           string   `json:"key"`
	Name          string   `json:"name"` // the sensor type's
	Value         *float64 `json:"value"`
	Text          *string  `json:"text,omitempty"` // nil for a number
	ReadingDate   string   `json:"reading_date"`
	MetricUnits   string   `json:"metric_units"`
	ImperialUnits string   `json:"imperial_units"`
}

// Updated is the answer to a post of readings.
type Updated struct {
	Sensors []ReadingRow `json:"data"` // those that were updated
	// Notes say what of the post was not used, and why a sensor was not updated.
	Notes decoders.Notes `json:"notes,omitempty"`
}

// ReadingRows describes points with the names and units of their sensor types. A text
// has no value. It allocates three times per list, not three times per row.
func ReadingRows(points []Point, types map[string]SensorType, u Units) []ReadingRow {
	out := make([]ReadingRow, len(points))
	values := make(numbers, 0, len(points))
	dates := datesOf(points)
	for i := range points {
		p, r := &points[i], &out[i]
		t := sensorTypeOf(types, p.Type)
		r.SensorID, r.DeviceID, r.Key, r.Name = p.SensorID, p.DeviceID, p.Key, t.Name
		r.MetricUnits, r.ImperialUnits = t.MetricUnits, t.ImperialUnits
		r.ReadingDate, dates = dates[:len(TimeFormat)], dates[len(TimeFormat):]
		if p.IsText {
			r.Text = &p.Text
		} else {
			r.Value = values.add(u.of(t, p.Value))
		}
	}
	return out
}

// numbers holds the values of a list. Its capacity must suffice for all of them:
// add returns pointers into it.
type numbers []float64

// add appends a number and returns a pointer to it; nil if it is not finite.
func (n *numbers) add(v float64, finite bool) *float64 {
	if !finite {
		return nil
	}
	*n = append(*n, v)
	return &(*n)[len(*n)-1]
}

// datesOf returns the concatenated times of points.
func datesOf(points []Point) string {
	b := make([]byte, 0, len(TimeFormat)*len(points))
	for i := range points {
		b = appendDate(b, points[i].Time)
	}
	return string(b)
}

// dateOf formats a time in TimeFormat.
func dateOf(t time.Time) string { return string(appendDate(nil, t)) }

// appendDate appends a time in TimeFormat: a list has one in every row, and
// time.AppendFormat would take a tenth of what the list costs. The years of
// readings have four digits.
func appendDate(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 1000 || year > 9999 {
		return t.AppendFormat(b, TimeFormat)
	}
	hour, minute, second := t.Clock()
	b = strconv.AppendInt(b, int64(year), 10)
	for _, part := range [...]struct {
		before byte
		n      int
	}{{'-', int(month)}, {'-', day}, {' ', hour}, {':', minute}, {':', second}} {
		b = append(b, part.before, byte('0'+part.n/10), byte('0'+part.n%10))
	}
	return b
}
