package iot

import "time"

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
			ReadingDate: p.Time.UTC().Format(TimeFormat), MetricUnits: t.MetricUnits, ImperialUnits: t.ImperialUnits,
		}
		if p.IsText {
			out[i].Text = p.Text
		} else {
			out[i].Value = u.of(t, p.Value)
		}
	}
	return out
}
