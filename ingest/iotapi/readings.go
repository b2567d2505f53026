package iotapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listReadings(c *fiber.Ctx) error {
	p := relay.Problems{}
	q, u := readingQuery(c, p), unitsParam(c, p)
	q.Limit = intParam(c, p, "limit", iot.MaxReadings, iot.MaxReadings)
	if err := p.Err(); err != nil {
		return err
	}
	list, err := s.iot.Readings(c.UserContext(), q, u)
	if err != nil {
		return err
	}
	return records(c, list, recordWriter())
}

func (s *Surface) aggregateReadings(c *fiber.Ctx) error {
	p := relay.Problems{}
	q, u := iot.AggregateQuery{Query: readingQuery(c, p)}, unitsParam(c, p)
	q.Statistic, q.Granularity = iot.Statistic(query(c, "type")), iot.Granularity(query(c, "granularity"))
	if q.Granularity == "" {
		q.Granularity = iot.Hour
	}
	q.Check(p)
	if err := p.Err(); err != nil {
		return err
	}
	list, err := s.iot.Aggregate(c.UserContext(), q, u)
	if err != nil {
		return err
	}
	return records(c, list, aggregateWriter())
}

func (s *Surface) latestReadings(c *fiber.Ctx) error {
	p := relay.Problems{}
	u := unitsParam(c, p)
	if err := p.Err(); err != nil {
		return err
	}
	list, err := s.iot.Latest(c.UserContext(), httpd.AccountOf(c), param(c, "device_id"), u)
	if err != nil {
		return err
	}
	return records(c, list, recordWriter())
}

// readingQuery returns the query for the device and time range of a request. Readings are
// listed to the second, so the whole last second is included.
func readingQuery(c *fiber.Ctx, p relay.Problems) iot.Query {
	q := iot.Query{Account: httpd.AccountOf(c), DeviceID: param(c, "device_id")}
	q.From, q.To = timeParam(c, p, "startDate"), timeParam(c, p, "endDate")
	if _, day := iso8601.ParseDay(c.Query("endDate")); day {
		q.To = q.To.Add(24*time.Hour - time.Second)
	}
	if !q.To.IsZero() {
		q.To = q.To.Truncate(time.Second).Add(time.Second - 1)
	}
	return q
}

// timeParam reads a time parameter, in UTC unless it has a zone.
func timeParam(c *fiber.Ctx, p relay.Problems, name string) time.Time {
	text := c.Query(name)
	if text == "" {
		return time.Time{}
	}
	t, ok := iso8601.Parse(text)
	if !ok {
		p.Add(name, "The "+name+" does not match the format YYYY-MM-DD HH:mm:ss.")
	}
	return t
}

func unitsParam(c *fiber.Ctx, p relay.Problems) iot.Units {
	u, ok := iot.ParseUnits(query(c, "units"))
	if !ok {
		p.Add("units", "The selected units is invalid.")
	}
	return u
}
