package iotapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listReadings(c *fiber.Ctx) error {
	p := iot.Problems{}
	q, u := selected(c, p), units(c, p)
	q.Limit = number(c, p, "limit", iot.MaxReadings, iot.MaxReadings)
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
	p := iot.Problems{}
	q, u := iot.AggregateQuery{Query: selected(c, p)}, units(c, p)
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
	p := iot.Problems{}
	u := units(c, p)
	if err := p.Err(); err != nil {
		return err
	}
	list, err := s.iot.Latest(c.UserContext(), httpd.AccountOf(c), param(c, "device_id"), u)
	if err != nil {
		return err
	}
	return records(c, list, recordWriter())
}

// selected is the device and the time that a request asks for. Readings are
// shown to the second, so the last second belongs to the time as a whole.
func selected(c *fiber.Ctx, p iot.Problems) iot.Query {
	q := iot.Query{Account: httpd.AccountOf(c), DeviceID: param(c, "device_id")}
	q.From, q.To = moment(c, p, "startDate"), moment(c, p, "endDate")
	if !q.To.IsZero() {
		q.To = q.To.Add(time.Second - 1)
	}
	return q
}

// moment reads a time of the query, in UTC.
func moment(c *fiber.Ctx, p iot.Problems, name string) time.Time {
	text := c.Query(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.ParseInLocation(iot.TimeFormat, text, time.UTC)
	if err != nil || len(text) != len(iot.TimeFormat) {
		p.Add(name, "The "+name+" does not match the format YYYY-MM-DD HH:mm:ss.")
	}
	return t
}

func units(c *fiber.Ctx, p iot.Problems) iot.Units {
	u, ok := iot.ParseUnits(query(c, "units"))
	if !ok {
		p.Add("units", "The selected units is invalid.")
	}
	return u
}
