package iotapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listReadings(c *fiber.Ctx) error {
	in := listInput(c)
	q, u := in.readings(c), in.units()
	q.Limit = in.int("limit", iot.MaxReadings, iot.MaxReadings)
	if err := in.Err(); err != nil {
		return err
	}
	list, err := s.IoT.Readings(c.UserContext(), q, u)
	if err != nil {
		return err
	}
	return records(c, list, recordWriter())
}

func (s *Surface) aggregateReadings(c *fiber.Ctx) error {
	in := listInput(c)
	q, u := iot.AggregateQuery{Query: in.readings(c)}, in.units()
	q.Statistic, q.Granularity = iot.Statistic(in.Text("type")), iot.Granularity(in.Text("granularity"))
	if q.Granularity == "" {
		q.Granularity = iot.Hour
	}
	q.Check(in.Problems)
	if err := in.Err(); err != nil {
		return err
	}
	list, err := s.IoT.Aggregate(c.UserContext(), q, u)
	if err != nil {
		return err
	}
	return records(c, list, aggregateWriter())
}

func (s *Surface) latestReadings(c *fiber.Ctx) error {
	in := listInput(c)
	u := in.units()
	if err := in.Err(); err != nil {
		return err
	}
	list, err := s.IoT.Latest(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"), u)
	if err != nil {
		return err
	}
	return records(c, list, recordWriter())
}

// readings returns the query for the device and time range of a request. Readings are
// listed to the second, so the whole last second is included.
func (in input) readings(c *fiber.Ctx) iot.Query {
	q := iot.Query{Account: httpd.AccountOf(c), DeviceID: params.Path(c, "device_id")}
	q.From, q.To = in.time("startDate"), in.time("endDate")
	if _, day := iso8601.ParseDay(in.Text("endDate")); day {
		q.To = q.To.Add(24*time.Hour - time.Second)
	}
	if !q.To.IsZero() {
		q.To = q.To.Truncate(time.Second).Add(time.Second - 1)
	}
	return q
}

// time reads a time parameter, in UTC unless it has a zone.
func (in input) time(name string) time.Time {
	text := in.Text(name)
	if text == "" {
		return time.Time{}
	}
	t, ok := iso8601.Parse(text)
	if !ok {
		in.Wrong(name, "The %s does not match the format YYYY-MM-DD HH:mm:ss.")
	}
	return t
}

func (in input) units() iot.Units {
	u, ok := iot.ParseUnits(in.Text("units"))
	if !ok {
		in.Add("units", "The selected units is invalid.")
	}
	return u
}
