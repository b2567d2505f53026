package provisioning

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// NoJob is the refusal of a job that the account does not have.
func NoJob() error { return sim.Refuse(relay.KindNotFound, "Invalid job.") }

// Job loads a job of the account's list; the refusal NoJob if there is none with the
// id.
func (a *Actions) Job(ctx context.Context, acct account.ID, id string) (job.Job, error) {
	j, err := a.deps.Jobs.Get(ctx, acct, id)
	if err == nil && j.List != List {
		return job.Job{}, NoJob()
	}
	return j, sim.Missing(err, NoJob())
}

// JobFilter selects jobs; empty fields select all.
type JobFilter struct {
	State  job.State
	Action Action
	Name   string
	Newest bool // first; else the oldest
}

// ListJobs returns a page of the account's jobs in the order of their creation,
// and how many there are.
func (a *Actions) ListJobs(ctx context.Context, acct account.ID, f JobFilter, page relay.Page) ([]job.Job, int, error) {
	of := job.Filter{List: List, State: f.State, Name: f.Name, Newest: f.Newest}
	if f.Action != "" {
		of.Kind = f.Action.Kind()
	}
	return a.deps.Jobs.List(ctx, acct, of, page.Offset(), page.PerPage)
}
