package admin

import (
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/iot"
)

// bucketJSON is the readings of a sensor in one interval.
type bucketJSON struct {
	At   string   `json:"at"` // when the interval begins
	Min  *float64 `json:"min"`
	Mean *float64 `json:"mean"`
	Max  *float64 `json:"max"`
}

// sensorSeriesJSON is a sensor's numbers over time.
type sensorSeriesJSON struct {
	SensorID    string       `json:"sensor_id"`
	Key         string       `json:"key"`
	Name        string       `json:"name"` // the sensor type's
	MetricUnits string       `json:"metric_units"`
	Buckets     []bucketJSON `json:"buckets"`
}

// fewestBuckets is the smallest number of intervals of a range for which the gateway selects
// the granularity.
const fewestBuckets = 120

// granularityOf returns the widest granularity with enough buckets in a range.
func granularityOf(d time.Duration) iot.Granularity {
	granularities := iot.Granularities()
	for _, g := range slices.Backward(granularities) {
		if width, _ := g.Width(); width > 0 && d/width >= fewestBuckets {
			return g
		}
	}
	return granularities[0]
}

// aggregateDevice returns the minimum, mean and maximum of a device's numbers, by
// sensor. Without a range it is the last day's.
func (s *Surface) aggregateDevice(c *fiber.Ctx, sel *selection) error {
	start, end := sel.moment("from"), sel.moment("to")
	granularity := oneOf(sel, "granularity", iot.Granularities()...)
	if end.IsZero() {
		end = s.Now().UTC()
	}
	if start.IsZero() {
		start = end.Add(-24 * time.Hour)
	}
	if !start.Before(end) {
		sel.Add("from", "want a time before to")
	}
	acct, d, err := s.ofDevice(c, sel)
	if err != nil {
		return err
	}
	if granularity == "" {
		granularity = granularityOf(end.Sub(start))
	}
	records, err := s.IoT.Aggregate(c.UserContext(), iot.AggregateQuery{
		Query: iot.Query{Account: acct, DeviceID: d.ID, From: start, To: end}, Statistic: iot.MinAveMax, Granularity: granularity,
	}, iot.Metric)
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": seriesOf(records), "meta": fiber.Map{"from": formatTime(start), "to": formatTime(end), "granularity": granularity}})
}

func seriesOf(records []iot.AggregateRow) []sensorSeriesJSON {
	views, result := []sensorSeriesJSON{}, make(map[string]int)
	for _, r := range records {
		i, found := result[r.SensorID]
		if !found {
			i = len(views)
			result[r.SensorID] = i
			views = append(views, sensorSeriesJSON{SensorID: r.SensorID, Key: r.Key, Name: r.Name, MetricUnits: r.MetricUnits})
		}
		views[i].Buckets = append(views[i].Buckets, bucketJSON{*rfc3339(r.ReadingDate), r.Min, r.Ave, r.Max})
	}
	return views
}
