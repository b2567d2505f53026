package iot

import (
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
// has no value.
func ReadingRows(points []Point, types map[string]SensorType, u Units) []ReadingRow {
	out := make([]ReadingRow, len(points))
	for i := range points {
		p, r := &points[i], &out[i]
		t := sensorTypeOf(types, p.Type)
		r.SensorID, r.DeviceID, r.Key, r.Name = p.SensorID, p.DeviceID, p.Key, t.Name
		r.MetricUnits, r.ImperialUnits = t.MetricUnits, t.ImperialUnits
		r.ReadingDate = p.Time.UTC().Format(TimeFormat)
		if p.IsText {
			r.Text = &p.Text
		} else {
			r.Value = numberOrNil(u.of(t, p.Value))
		}
	}
	return out
}

// numberOrNil returns a pointer to a number; nil if it is not finite.
func numberOrNil(v float64, finite bool) *float64 {
	if !finite {
		return nil
	}
	return &v
}
