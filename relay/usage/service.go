package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

// Deps are the dependencies of a Service; all but Page and Now are required.
type Deps struct {
	Records     Records
	SIMs        SIMs
	Subscribers Subscribers
	Jobs        Jobs
	Files       Files   // of CDRs
	Exports     Exports // of reports
	List        string  // the list of the account's jobs that contains the exports
	Page        int     // number of records that one query reads; 0 means 2000
	Now         func() time.Time
}

// Service exports the usage of SIMs.
type Service struct{ deps Deps }

// New returns a Service.
func New(d Deps) *Service {
	if d.Now == nil {
		d.Now = time.Now
	}
	d.Page = cmp.Or(d.Page, 2000)
	return &Service{deps: d}
}

// RequestCDR submits a job that creates a file of CDRs, and returns the job's id. It returns
// relay.KindInvalid if the period ends before it starts or is too long, or the account does not
// have the subscriber, and relay.KindNotFound if there are no records.
func (s *Service) RequestCDR(ctx context.Context, acct relay.AccountID, r Request) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if r.Subscriber != "" {
		_, err := s.deps.Subscribers.Get(ctx, acct, r.Subscriber)
		if relay.KindOf(err) == relay.KindNotFound {
			err = relay.Invalid("subscriber_id", "The selected subscriber id is invalid.")
		}
		if err != nil {
			return "", err
		}
	}
	exists, err := s.deps.Records.Any(ctx, acct, r.span(), r.Subscriber)
	if err != nil {
		return "", err
	}
	if !exists {
		return "", relay.Errorf(relay.KindNotFound, "usage: there are no records from %s to %s", r.Start, r.End)
	}
	return s.submit(ctx, acct, CDRKind, r)
}

// RequestUsage submits a job that creates a usage report, and returns the job's id. The report may be
// empty. It returns relay.KindInvalid as RequestCDR does.
func (s *Service) RequestUsage(ctx context.Context, acct relay.AccountID, r Request) (string, error) {
	r.Subscriber = ""
	if err := r.check(); err != nil {
		return "", err
	}
	return s.submit(ctx, acct, ReportKind, r)
}

func (s *Service) submit(ctx context.Context, acct relay.AccountID, kind job.Kind, r Request) (string, error) {
	now := s.deps.Now().UTC()
	r.Start, r.End = r.Start.UTC(), r.End.UTC()
	input, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("usage: request: encode: %w", err)
	}
	j := job.Job{
		ID: relay.NewUUID(now), Account: acct, Kind: kind, Input: input, CreatedAt: now, Retention: jobRetention,
		List: s.deps.List, Name: r.Name,
	}
	return j.ID, s.deps.Jobs.Submit(ctx, j)
}

// ErrNotCompleted is returned for an export whose job has not completed.
var ErrNotCompleted = errors.New("usage: the job is not completed")

// loadCompleted loads the input of a completed job and the number of records or rows in its result.
// It returns ErrNotCompleted for an unfinished job, and relay.KindNotFound for a job that failed,
// is older than ReportLifetime, has another kind, or does not belong to the account.
func (s *Service) loadCompleted(ctx context.Context, acct relay.AccountID, id string, kind job.Kind) (r Request, n int64, err error) {
	j, err := s.deps.Jobs.Get(ctx, acct, id)
	if err != nil {
		return r, 0, err
	}
	switch {
	case j.Kind != kind || j.State == job.Failed || !s.deps.Now().Before(j.CreatedAt.Add(ReportLifetime)):
		return r, 0, relay.Errorf(relay.KindNotFound, "usage: job %s has no result", id)
	case j.State != job.Completed:
		return r, 0, ErrNotCompleted
	}
	var result jobResult
	if err := errors.Join(json.Unmarshal(j.Input, &r), json.Unmarshal(j.Result, &result)); err != nil {
		return r, 0, fmt.Errorf("usage: job %s: %w", id, err)
	}
	return r, result.Count, nil
}

// File is a file of CDRs.
type File struct {
	io.ReadCloser
	Name string
	Size int64 // bytes
}

// CDR opens the file of a job. It returns ErrNotCompleted, or relay.KindNotFound if there is no
// such file.
func (s *Service) CDR(ctx context.Context, acct relay.AccountID, id string) (File, error) {
	r, _, err := s.loadCompleted(ctx, acct, id, CDRKind)
	if err != nil {
		return File{}, err
	}
	body, size, err := s.deps.Files.Open(ctx, id)
	const day = "20060102"
	return File{ReadCloser: body, Name: fmt.Sprintf("cdr-%s-%s.csv", r.Start.Format(day), r.End.Format(day)), Size: size}, err
}

// Report is a page of a usage report.
type Report struct {
	Span
	Rows  []Row
	Total int // number of rows of the whole report
}

// Usage returns a page of the report of a job. It returns ErrNotCompleted, or relay.KindNotFound
// if there is no such report.
func (s *Service) Usage(ctx context.Context, acct relay.AccountID, id string, offset, limit int) (Report, error) {
	r, n, err := s.loadCompleted(ctx, acct, id, ReportKind)
	if err != nil {
		return Report{}, err
	}
	rows, err := s.deps.Records.Rows(ctx, id, offset, limit)
	return Report{Span: r.span(), Rows: rows, Total: int(n)}, err
}

// The kinds of jobs that an account requests. The API lists them as cdr_report and usage_report.
const (
	CDRKind    job.Kind = "sim.cdr_report"
	ReportKind job.Kind = "sim.usage_report"
)

const (
	// MaxSpan is the longest period of a request.
	MaxSpan = 31 * 24 * time.Hour
	// ReportLifetime is the time for which a report can be read after its request.
	ReportLifetime = 30 * 24 * time.Hour
	// jobRetention is the time for which a job is listed after its end. The default of SIM jobs,
	// provisioning.Options.KeepJobs, is the same.
	jobRetention = 90 * 24 * time.Hour
	// FileLifetime is the time for which a CDR file can be fetched after its creation.
	FileLifetime = 7 * 24 * time.Hour
)

// maxName is the largest length of a job's name, in characters.
const maxName = 255

// Request requests an export of an account's usage, and is the input of its job.
type Request struct {
	Start      time.Time `json:"from"`
	End        time.Time `json:"to"`                   // exclusive
	Subscriber string    `json:"subscriber,omitempty"` // selects the SIMs of a CDR file; empty means all SIMs
	Name       string    `json:"-"`                    // the name of the job in the list
}

func (r Request) span() Span { return Span{r.Start, r.End} }

func (r Request) check() error {
	p := relay.Problems{}
	switch {
	case !r.End.After(r.Start):
		p.Add("end_time", "The end time must be a date after start time.")
	case r.End.Sub(r.Start) > MaxSpan:
		p.Add("end_time", "The end time must be at most 31 days after start time.")
	}
	if utf8.RuneCountInString(r.Name) > maxName {
		p.Add("name", "The name must be at most 255 characters.")
	}
	return p.Err()
}

// jobResult is the result of a job.
type jobResult struct {
	Count int64 `json:"count"` // number of records or rows
}
