package iot

import (
	"strconv"
	"time"
)

// TimeFormat is how times are written and read in queries and answers, in UTC.
const TimeFormat = time.DateTime

// Record is a reading as the API lists it.
type Record struct {
	SensorID      string   `json:"sensor_id"`
	DeviceID      string   `json:"device_id"`
	Key           string   `json:"key"`
	Name          string   `json:"name"` // the sensor type's
	Value         *float64 `json:"value"`
	Text          string   `json:"text,omitempty"`
	ReadingDate   string   `json:"reading_date"`
	MetricUnits   string   `json:"metric_units"`
	ImperialUnits string   `json:"imperial_units"`
}

// Records describes points with the names and units of their sensor types, in
// metric units. A text has no value.
func Records(points []Point, types map[string]SensorType) []Record {
	return records(points, types, Metric)
}

func records(points []Point, types map[string]SensorType, u Units) []Record {
	out := make([]Record, len(points))
	for i, p := range points {
		t := named(types, p.Type)
		out[i] = Record{
			SensorID: p.SensorID, DeviceID: p.DeviceID, Key: p.Key, Name: t.Name,
			ReadingDate: dateOf(p.Time), MetricUnits: t.MetricUnits, ImperialUnits: t.ImperialUnits,
		}
		if p.IsText {
			out[i].Text = p.Text
		} else {
			out[i].Value = u.of(t, p.Value)
		}
	}
	return out
}

// dateOf writes a time in TimeFormat: a list has one in every row, and
// time.Format would take a tenth of what the list costs.
func dateOf(t time.Time) string {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 1000 || year > 9999 {
		return t.Format(TimeFormat)
	}
	hour, minute, second := t.Clock()
	b := make([]byte, 0, len(TimeFormat))
	b = strconv.AppendInt(b, int64(year), 10)
	for _, part := range [...]struct {
		before byte
		n      int
	}{{'-', int(month)}, {'-', day}, {' ', hour}, {':', minute}, {':', second}} {
		b = append(b, part.before, byte('0'+part.n/10), byte('0'+part.n%10))
	}
	return string(b)
}
