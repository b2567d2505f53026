package job

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Store stores jobs.
type Store interface {
	Getter

	// Create saves a new job, queued and due. A job whose id exists is left unchanged.
	Create(ctx context.Context, j Job) error

	// Lease takes the right to run a job until the given time and makes it
	// processing. It answers false, with the job as it stands, if that has ended
	// or is not due; relay.KindNotFound if there is none.
	Lease(ctx context.Context, r Ref, now, until time.Time) (Job, bool, error)

	// Finish records the outcome of a run, in one transaction. A job that has ended is
	// unchanged.
	Finish(ctx context.Context, j Job, o Outcome, now time.Time) error

	// Due returns jobs that are due at or before the given time, over all
	// accounts, those of each account oldest first.
	Due(ctx context.Context, before time.Time, limit int) ([]Ref, error)
}

// Submitter takes new jobs.
type Submitter interface {
	// Submit saves a job and schedules it. If it returns no error, the job will run.
	Submit(ctx context.Context, j Job) error
}

// Getter loads jobs.
type Getter interface {
	// Get loads a job; relay.KindNotFound if the account has none of the id.
	Get(ctx context.Context, acct relay.AccountID, id string) (Job, error)
}

// Filter selects jobs of a list; zero fields select all.
type Filter struct {
	List  string // needed
	State State
	Kind  Kind
	Name  string // the whole name
	// Newest has the newest first; else the oldest.
	Newest bool
}

// Lister lists the jobs that belong to a list.
type Lister interface {
	// List returns jobs in the order of their creation, from an offset on and at
	// most limit, and how many the filter selects.
	List(ctx context.Context, acct relay.AccountID, f Filter, offset, limit int) (found []Job, total int, err error)
}

// Search selects jobs of one or all accounts, in lists or not; empty fields select all.
type Search struct {
	Account relay.AccountID
	State   State
	Kind    Kind
	Before  int64 // place of the last of the page before; 0: none
	Limit   int
}

// Found is a job of a search; Place is its number in the order of creation.
type Found struct {
	Place int64
	Job
}
