package restv3

import (
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/provisioning"
)

// jobJSON is a job of a list.
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

// listJobs is operation 11.
func (s *Surface) listJobs(c *fiber.Ctx) error {
	i, _, err := listInput(c)
	if err != nil {
		return err
	}
	page := i.page()
	f := provisioning.JobFilter{
		State: job.State(i.Text("status")), Action: provisioning.Action(i.Text("action")), Name: i.Text("name"), Newest: i.descending(),
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
	return paged(c, "Jobs found.", page, httpd.Each(found, jobOf), total)
}

// jobStatus is operation 12.
func (s *Surface) jobStatus(c *fiber.Ctx) (job.Job, error) {
	return s.Actions.Job(c.UserContext(), httpd.AccountOf(c), params.Path(c, "jobId"))
}

// statusJSON is the state of a job, with why it failed if it did.
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
