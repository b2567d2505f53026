package restv3

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// orderedJSON is the answer to a request for CDRs or usage.
type orderedJSON struct {
	Message string `json:"message"`
	Data    struct {
		ID string `json:"id"`
	} `json:"data"`
}

// order is operations 13 and 15: it has a job made.
func order(message string, request func(context.Context, relay.AccountID, usage.Request) (string, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ask, err := read(c, input.usage)
		if err != nil {
			return err
		}
		id, err := request(c.UserContext(), httpd.AccountOf(c), ask)
		if relay.KindOf(err) == relay.KindNotFound {
			err = sim.Refuse(relay.KindNotFound, "No CDR records found for the given period.")
		}
		if err != nil {
			return err
		}
		view := orderedJSON{Message: message}
		view.Data.ID = id
		return c.JSON(view)
	}
}

// usage reads the parameters of a report.
func (i input) usage() usage.Request {
	return usage.Request{
		Start: i.moment("start_time"), End: i.moment("end_time"),
		Subscriber: i.Text("subscriber_id"), Name: i.Text("name"),
	}
}

// moment reads a time in ISO 8601 that must be given; without a zone it is UTC,
// and a day alone is its midnight.
func (i input) moment(name string) time.Time {
	return i.Time(name, "an ISO 8601 date and time, like 2026-01-31T12:00:00Z")
}

// unready turns what cannot be handed out into refusals.
func unready(err, none error) error {
	switch {
	case errors.Is(err, usage.ErrNotCompleted):
		return sim.Refuse(relay.KindInvalid, "Job is not completed.")
	case relay.KindOf(err) == relay.KindNotFound:
		return none
	}
	return err
}

// streamCDR is operation 14.
func (s *Surface) streamCDR(c *fiber.Ctx) error {
	f, err := s.Usage.CDR(c.UserContext(), httpd.AccountOf(c), params.Path(c, "id"))
	if err != nil {
		return unready(err, sim.Refuse(relay.KindNotFound, "File not found."))
	}
	c.Set(fiber.HeaderContentType, "text/csv")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+f.Name+`"`)
	httpd.Stream(c, f, f.Size)
	return nil
}

// usageRowJSON is a row of a usage report.
type usageRowJSON struct {
	ICCID        string `json:"iccid"`
	SubscriberID string `json:"subscriber_id"`
	Company      string `json:"subscriber_company_name"`
	StartDate    string `json:"start_date"`
	EndDate      string `json:"end_date"`
	Usage        int64  `json:"usage"`
	Unit         string `json:"unit"`
}

// usageReport is operation 16.
func (s *Surface) usageReport(c *fiber.Ctx) error {
	i, _, err := listInput(c)
	if err != nil {
		return err
	}
	page := i.page()
	if err := i.Err(); err != nil {
		return err
	}
	r, err := s.Usage.Usage(c.UserContext(), httpd.AccountOf(c), params.Path(c, "id"), page.Offset(), page.PerPage)
	if err != nil {
		return unready(err, sim.Refuse(relay.KindNotFound, "Invalid job."))
	}
	const micros = "2006-01-02T15:04:05.000000Z"
	src, dst := r.From.UTC().Format(micros), r.To.UTC().Format(micros)
	return paged(c, "Usage report found.", page, httpd.Each(r.Rows, func(row usage.Row) usageRowJSON {
		return usageRowJSON{row.ICCID, row.Subscriber, row.Company, src, dst, row.Bytes, "bytes"}
	}), r.Total)
}
