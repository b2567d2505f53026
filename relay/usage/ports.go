package usage

import (
	"context"
	"io"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// Counters stores records and their totals; *Store documents the methods.
type Counters interface {
	Put(ctx context.Context, records []Record) error
	Totals(ctx context.Context, acct relay.AccountID, subjects []Subject) ([]Total, error)
	AddSteps(ctx context.Context, acct relay.AccountID, s Subject, steps Steps) error
	RemoveSteps(ctx context.Context, acct relay.AccountID, s Subject, steps Steps, limitBytes int64) error
}

// Records reads stored records and stores the rows of reports; *Store documents the methods.
type Records interface {
	Any(ctx context.Context, acct relay.AccountID, span Span, subscriber string) (bool, error)
	Read(ctx context.Context, acct relay.AccountID, iccid sim.ICCID, span Span, cursor Cursor, limit int) ([]StoredRecord, error)
	Sums(ctx context.Context, acct relay.AccountID, span Span, add func([]Sum) error) error
	Begin(ctx context.Context, id string, t time.Time) error
	Add(ctx context.Context, id string, rows []Row) error
	Rows(ctx context.Context, id string, offset, limit int) ([]Row, error)
}

// Row is the usage of a SIM in the period of a report.
type Row struct {
	ICCID, Subscriber, Company string
	Bytes                      int64
}

// SIMs reads the SIMs of accounts; sim.SIMs documents the methods.
type SIMs interface {
	GetMany(ctx context.Context, acct relay.AccountID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error)
	Scan(ctx context.Context, acct relay.AccountID, scope sim.Scope, lastICCID sim.ICCID, limit int) ([]sim.ICCID, error)
}

// Pools reads pools.
type Pools interface {
	Get(ctx context.Context, acct relay.AccountID, id string) (sim.Pool, error) // relay.KindNotFound if there is none
}

// Subscribers reads subscribers.
type Subscribers interface {
	Get(ctx context.Context, acct relay.AccountID, id string) (sim.Subscriber, error) // relay.KindNotFound if there is none
}

// Suspender suspends SIMs.
type Suspender interface {
	// Suspend orders the suspension of a SIM. It does nothing if the SIM is not in service or
	// another job is about to end its service. It returns relay.KindUnavailable while the
	// suspension cannot be ordered.
	Suspend(ctx context.Context, acct relay.AccountID, iccid sim.ICCID) error
}

// Files creates files and stores them for a limited time.
type Files interface {
	// Make creates a file with the content that fill writes, and returns the number of records
	// that fill returns. If ctx ends first, the work continues, and the error is
	// relay.KindUnavailable.
	Make(ctx context.Context, name string, fill func(ctx context.Context, writer io.Writer) (int64, error)) (int64, error)
	// Open opens a file and returns its size in bytes; relay.KindNotFound if there is no such
	// file. The file can be read after ctx has ended.
	Open(ctx context.Context, name string) (io.ReadCloser, int64, error)
}

// Exports runs work that takes longer than a job may run, like Files.Make without a file.
type Exports interface {
	Do(ctx context.Context, name string, work func(ctx context.Context) (int64, error)) (int64, error)
}

// Jobs submits and loads jobs.
type Jobs interface {
	job.Submitter
	job.Getter
}
