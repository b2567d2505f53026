package restv3

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

type jobJSON struct {
	ID        string              `json:"id"`
	Action    provisioning.Action `json:"action"`
	Status    job.State           `json:"status"`
	CreatedAt string              `json:"created_at"`
	Name      string              `json:"name,omitempty"`
}

func jobOf(j job.Job) jobJSON {
	return jobJSON{j.ID, provisioning.ActionOf(j.Kind), j.State, j.CreatedAt.UTC().Format(time.RFC3339), j.Name}
}

func (s *Surface) listJobs(c *fiber.Ctx) error {
	i, _, err := listInput(c)
	if err != nil {
		return err
	}
	page := i.Page(perPage)
	f := provisioning.JobFilter{
		State: job.State(i.Text("status")), Action: provisioning.Action(i.Text("action")), Name: i.Text("name"), NewestFirst: i.descending(),
	}
	if f.State != "" && !slices.Contains(job.States(), f.State) {
		i.AddNamed("status", "The %s must be queued, processing, completed or failed.")
	}
	if err := i.Err(); err != nil {
		return err
	}
	found, total, err := s.Actions.ListJobs(c.UserContext(), httpd.AccountOf(c), f, page)
	if err != nil {
		return err
	}
	return sendPage(c, "Jobs found.", page, httpd.Each(found, jobOf), total)
}

type statusJSON struct {
	ID     string    `json:"id"`
	Status job.State `json:"status"`
	Error  string    `json:"error,omitempty"`
}

func statusOf(j job.Job) statusJSON {
	view := statusJSON{ID: j.ID, Status: j.State}
	if j.State == job.Failed {
		view.Error = j.Error
	}
	return view
}

type requestedReportJSON struct {
	Message string `json:"message"`
	Data    struct {
		ID string `json:"id"`
	} `json:"data"`
}

func requestReport(message string, request func(context.Context, relay.AccountID, usage.Request) (string, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		report, err := read(c, input.usage)
		if err != nil {
			return err
		}
		id, err := request(c.UserContext(), httpd.AccountOf(c), report)
		if relay.KindOf(err) == relay.KindNotFound {
			err = sim.Refuse(relay.KindNotFound, "No CDR records found for the given period.")
		}
		if err != nil {
			return err
		}
		view := requestedReportJSON{Message: message}
		view.Data.ID = id
		return c.JSON(view)
	}
}

func (i input) usage() usage.Request {
	return usage.Request{
		Start: i.timestamp("start_time"), End: i.timestamp("end_time"),
		Subscriber: i.Text("subscriber_id"), Name: i.Text("name"),
	}
}

// timestamp reads a required time in ISO 8601, in UTC if it has no zone. A day without a time is
// its midnight.
func (i input) timestamp(name string) time.Time {
	return i.Time(name, "an ISO 8601 date and time, like 2026-01-31T12:00:00Z")
}

// reportError returns an error for a report that is not completed, missing for a report that does
// not exist, and any other error as it is.
func reportError(err, missing error) error {
	switch {
	case errors.Is(err, usage.ErrNotCompleted):
		return sim.Refuse(relay.KindInvalid, "Job is not completed.")
	case relay.KindOf(err) == relay.KindNotFound:
		return missing
	}
	return err
}

func (s *Surface) streamCDR(c *fiber.Ctx) error {
	f, err := s.Usage.CDR(c.UserContext(), httpd.AccountOf(c), params.Path(c, "id"))
	if err != nil {
		return reportError(err, sim.Refuse(relay.KindNotFound, "File not found."))
	}
	c.Set(fiber.HeaderContentType, "text/csv")
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+f.Name+`"`)
	httpd.Stream(c, f, f.Size)
	return nil
}

type usageRowJSON struct {
	ICCID        string `json:"iccid"`
	SubscriberID string `json:"subscriber_id"`
	Company      string `json:"subscriber_company_name"`
	StartDate    string `json:"start_date"`
	EndDate      string `json:"end_date"`
	Usage        int64  `json:"usage"`
	Unit         string `json:"unit"`
}

func (s *Surface) usageReport(c *fiber.Ctx) error {
	i, _, err := listInput(c)
	if err != nil {
		return err
	}
	page := i.Page(perPage)
	if err := i.Err(); err != nil {
		return err
	}
	r, err := s.Usage.Usage(c.UserContext(), httpd.AccountOf(c), params.Path(c, "id"), page.Offset(), page.PerPage)
	if err != nil {
		return reportError(err, sim.Refuse(relay.KindNotFound, "Invalid job."))
	}
	const micros = "2006-01-02T15:04:05.000000Z"
	start, end := r.From.UTC().Format(micros), r.To.UTC().Format(micros)
	return sendPage(c, "Usage report found.", page, httpd.Each(r.Rows, func(row usage.Row) usageRowJSON {
		return usageRowJSON{row.ICCID, row.Subscriber, row.Company, start, end, row.Bytes, "bytes"}
	}), r.Total)
}
