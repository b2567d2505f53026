package usage

import (
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

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
