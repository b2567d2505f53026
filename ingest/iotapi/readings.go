package iotapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listReadings(c *fiber.Ctx) error {
	i := listInput(c)
	q, u := i.readingsQuery(c), i.units()
	q.Limit = i.int("limit", iot.MaxReadings, iot.MaxReadings)
	if err := i.Err(); err != nil {
		return err
	}
	list, err := s.IoT.Readings(c.UserContext(), q, u)
	if err != nil {
		return err
	}
	return sendRecords(c, list, recordWriter())
}

func (s *Surface) aggregateReadings(c *fiber.Ctx) error {
	i := listInput(c)
	q, u := iot.AggregateQuery{Query: i.readingsQuery(c)}, i.units()
	q.Statistic, q.Granularity = iot.Statistic(i.Text("type")), iot.Granularity(i.Text("granularity"))
	if q.Granularity == "" {
		q.Granularity = iot.Hour
	}
	q.Check(i.Problems)
	if err := i.Err(); err != nil {
		return err
	}
	list, err := s.IoT.Aggregate(c.UserContext(), q, u)
	if err != nil {
		return err
	}
	return sendRecords(c, list, aggregateWriter())
}

func (s *Surface) latestReadings(c *fiber.Ctx) error {
	i := listInput(c)
	u := i.units()
	if err := i.Err(); err != nil {
		return err
	}
	list, err := s.IoT.Latest(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"), u)
	if err != nil {
		return err
	}
	return sendRecords(c, list, recordWriter())
}

// readingsQuery returns the query for the device and the time range of a request. The range includes
// the whole last second, because answers have times in seconds.
func (i input) readingsQuery(c *fiber.Ctx) iot.Query {
	q := iot.Query{Account: httpd.AccountOf(c), DeviceID: params.Path(c, "device_id")}
	q.From, q.To = i.time("startDate"), i.time("endDate")
	if _, day := iso8601.ParseDay(i.Text("endDate")); day {
		q.To = q.To.Add(24*time.Hour - time.Second)
	}
	if !q.To.IsZero() {
		q.To = q.To.Truncate(time.Second).Add(time.Second - 1)
	}
	return q
}

// time reads a time parameter, in UTC unless it has a zone.
func (i input) time(name string) time.Time {
	text := i.Text(name)
	if text == "" {
		return time.Time{}
	}
	t, ok := iso8601.Parse(text)
	if !ok {
		i.AddProblem(name, "The %s does not match the format YYYY-MM-DD HH:mm:ss.")
	}
	return t
}

func (i input) units() iot.Units {
	u, ok := iot.ParseUnits(i.Text("units"))
	if !ok {
		i.Add("units", "The selected units are invalid.")
	}
	return u
}

// Submitter journals readings that are added to a device; package uplink implements it.
type Submitter interface {
	Submit(ctx context.Context, acct relay.AccountID, path, identifier string, body []byte) (iot.UpdatedSensors, error)
}

func (s *Surface) addReadings(c *fiber.Ctx) error {
	var request struct {
		Reading  json.RawMessage `json:"reading,omitempty"`
		Readings json.RawMessage `json:"readings,omitempty"`
	}
	if err := decodeRequest(c, &request); err != nil {
		return err
	}
	acct := httpd.AccountOf(c)
	d, err := s.IoT.Device(c.UserContext(), acct, params.Path(c, "device_id"))
	if err != nil {
		return err
	}
	data, err := json.Marshal(request) // the parameters may be in the query
	if err != nil {
		return err
	}
	p := relay.Problems{}
	_, faults := netserver.ParseSubmission(d.Identifier, data)
	for _, f := range faults {
		p.Add(f.Field, f.Problem)
	}
	if err := p.Err(); err != nil {
		return err
	}
	updated, err := s.Submit.Submit(c.UserContext(), acct, utils.CopyString(c.Path()), d.Identifier, data)
	if err != nil {
		return err
	}
	return c.JSON(updated)
}
