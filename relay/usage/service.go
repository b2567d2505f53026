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
	"github.com/penstock/penstock/relay/sim"
)

// Deps are the dependencies of a Service; all but Now are required.
type Deps struct {
	Records     Records
	Reports     Reports
	SIMs        SIMs
	Subscribers Subscribers
	Jobs        Jobs
	Files       Files   // of CDRs
	Exports     Exports // of reports
	Now         func() time.Time
}

// Options are optional settings.
type Options struct {
	// List is the list of jobs in which these appear.
	List string
	// Page is the number of records that are read at one time; 0 means 2000.
	Page int
}

// Service exports the usage of SIMs.
type Service struct {
	deps Deps
	opts Options
}

// New returns a Service.
func New(d Deps, o Options) (*Service, error) {
	if d.Records == nil || d.Reports == nil || d.SIMs == nil || d.Subscribers == nil || d.Jobs == nil || d.Files == nil || d.Exports == nil {
		return nil, errors.New("usage: records, reports, SIMs, subscribers, jobs, files and exports are needed")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	o.Page = cmp.Or(o.Page, 2000)
	return &Service{deps: d, opts: o}, nil
}

// RequestCDR submits a job that makes a file of CDRs and returns its id. It returns
// relay.KindInvalid with the parameters if the time ends before it starts or is too
// long, or the account has no such subscriber, and relay.KindNotFound if there are
// no records.
func (s *Service) RequestCDR(ctx context.Context, acct relay.AccountID, a Request) (string, error) {
	if err := a.check(); err != nil {
		return "", err
	}
	if a.Subscriber != "" {
		_, err := s.deps.Subscribers.Get(ctx, acct, a.Subscriber)
		if relay.KindOf(err) == relay.KindNotFound {
			err = relay.Invalid("subscriber_id", "The selected subscriber id is invalid.")
		}
		if err != nil {
			return "", err
		}
	}
	if err := s.present(ctx, acct, a); err != nil {
		return "", err
	}
	return s.submit(ctx, acct, CDRKind, a)
}

// RequestUsage submits a job that makes a usage report, which may be empty, and
// returns its id. It returns relay.KindInvalid as RequestCDR does.
func (s *Service) RequestUsage(ctx context.Context, acct relay.AccountID, a Request) (string, error) {
	a.Subscriber = ""
	if err := a.check(); err != nil {
		return "", err
	}
	return s.submit(ctx, acct, ReportKind, a)
}

// present returns relay.KindNotFound if there are no records in the requested time.
func (s *Service) present(ctx context.Context, acct relay.AccountID, a Request) error {
	error := relay.Errorf(relay.KindNotFound, "usage: there are no records from %s to %s", a.Start, a.End)
	span := Span{a.Start, a.End}
	if a.Subscriber == "" {
		ok, err := s.deps.Records.Any(ctx, acct, span, nil)
		if err == nil && !ok {
			return error
		}
		return err
	}
	for lastICCID := sim.ICCID(""); ; {
		iccids, err := s.deps.SIMs.Scan(ctx, acct, sim.Scope{Subscriber: a.Subscriber}, lastICCID, pageSize)
		if err != nil {
			return err
		}
		if len(iccids) == 0 {
			return error
		}
		ok, err := s.deps.Records.Any(ctx, acct, span, iccids)
		if ok || err != nil {
			return err
		}
		lastICCID = iccids[len(iccids)-1]
	}
}

func (s *Service) submit(ctx context.Context, acct relay.AccountID, kind job.Kind, a Request) (string, error) {
	now := s.deps.Now().UTC()
	input, err := json.Marshal(order{From: a.Start.UTC(), To: a.End.UTC(), Subscriber: a.Subscriber})
	if err != nil {
		return "", fmt.Errorf("usage: order: encode: %w", err)
	}
	j := job.Job{
		ID: relay.NewUUID(now), Account: acct, Kind: kind, Input: input, CreatedAt: now, Keep: jobLife,
		List: s.opts.List, Name: a.Name,
	}
	return j.ID, s.deps.Jobs.Submit(ctx, j)
}

// ErrNotCompleted is returned for an export whose job has not completed.
var ErrNotCompleted = errors.New("usage: the job is not completed")

// done loads a completed job. It returns relay.KindNotFound for a job that the
// account does not have, that is of another kind, or that failed.
func (s *Service) done(ctx context.Context, acct relay.AccountID, id string, kind job.Kind) (o order, n int64, err error) {
	j, err := s.deps.Jobs.Get(ctx, acct, id)
	if err != nil {
		return o, 0, err
	}
	switch {
	case j.Kind != kind || j.State == job.Failed || !s.deps.Now().Before(j.CreatedAt.Add(ReportLife)):
		return o, 0, relay.Errorf(relay.KindNotFound, "usage: job %s has nothing to hand out", id)
	case j.State != job.Completed:
		return o, 0, ErrNotCompleted
	}
	var c counted
	if err := errors.Join(json.Unmarshal(j.Input, &o), json.Unmarshal(j.Result, &c)); err != nil {
		return o, 0, fmt.Errorf("usage: job %s: %w", id, err)
	}
	return o, c.Count, nil
}

// File is a file of CDRs.
type File struct {
	io.ReadCloser
	Name string
	Size int64 // bytes
}

// CDR opens the file of a job. It returns ErrNotCompleted, or relay.KindNotFound
// if there is none.
func (s *Service) CDR(ctx context.Context, acct relay.AccountID, id string) (File, error) {
	o, _, err := s.done(ctx, acct, id, CDRKind)
	if err != nil {
		return File{}, err
	}
	body, size, err := s.deps.Files.Open(ctx, id)
	const day = "20060102"
	return File{ReadCloser: body, Name: fmt.Sprintf("cdr-%s-%s.csv", o.From.Format(day), o.To.Format(day)), Size: size}, err
}

// Report is a page of a usage report.
type Report struct {
	Span
	Rows  []Row
	Total int // rows of the whole report
}

// Usage returns a page of the report of a job. It returns ErrNotCompleted, or
// relay.KindNotFound if there is none.
func (s *Service) Usage(ctx context.Context, acct relay.AccountID, id string, offset, limit int) (Report, error) {
	o, n, err := s.done(ctx, acct, id, ReportKind)
	if err != nil {
		return Report{}, err
	}
	rows, err := s.deps.Reports.Rows(ctx, id, offset, limit)
	return Report{Span: o.span(), Rows: rows, Total: int(n)}, err
}

// The kinds of jobs that an account requests. They are listed with those of its SIMs,
// as cdr_report and usage_report.
const (
	CDRKind    job.Kind = "sim.cdr_report"
	ReportKind job.Kind = "sim.usage_report"
)

const (
	// MaxSpan is the longest time that may be requested.
	MaxSpan = 31 * 24 * time.Hour
	// ReportLife is the time for which a report can be read, from when it was requested.
	ReportLife = 30 * 24 * time.Hour
	// jobLife is the time for which a job is listed after its end, as those of SIMs are.
	jobLife = 90 * 24 * time.Hour
	// FileLife is the time for which a CDR file can be fetched, from when it was made.
	FileLife = 7 * 24 * time.Hour
)

// maxName is the largest length of a job's name, in characters.
const maxName = 255

// Request requests an export of an account's usage.
type Request struct {
	// Start and End bound the records by their start; End does not belong to them.
	Start, End time.Time
	Subscriber string // of CDRs: only of the SIMs of one; empty: of all
	Name       string // of a report
}

// check returns the invalid fields of a request.
func (a Request) check() error {
	p := relay.Problems{}
	switch {
	case !a.End.After(a.Start):
		p.Add("end_time", "The end time must be a date after start time.")
	case a.End.Sub(a.Start) > MaxSpan:
		p.Add("end_time", "The end time must be at most 31 days after start time.")
	}
	if utf8.RuneCountInString(a.Name) > maxName {
		p.Add("name", "The name must be at most 255 characters.")
	}
	return p.Err()
}

// order is the input of a job.
type order struct {
	From       time.Time `json:"from"`
	To         time.Time `json:"to"` // not within
	Subscriber string    `json:"subscriber,omitempty"`
}

func (o order) span() Span { return Span{o.From, o.To} }

// counted is the result of a job.
type counted struct {
	Count int64 `json:"count"` // of records or rows
}
