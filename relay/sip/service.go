package sip

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// Archives makes archives and keeps them while their handles are valid.
type Archives interface {
	// Make makes an archive unless it exists and returns the number of its calls. If ctx ends
	// first, the work continues, and the error is relay.KindUnavailable.
	Make(ctx context.Context, o Order) (calls int64, err error)
}

// Deps are the dependencies of a Service. All but PublicURL and Now are required.
type Deps struct {
	Jobs     job.Getter
	Submit   job.Submitter
	Archives Archives
	Mails    outbox.Mailer
	// PublicURL is the base URL of downloads, without a slash at the end; it may be empty.
	PublicURL string
	Now       func() time.Time
}

// Service accepts requests for archives of calls and makes the archives.
type Service struct{ deps Deps }

// New returns a Service.
func New(d Deps) *Service {
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Service{deps: d}
}

// Request submits a job that makes an archive. It returns relay.KindInvalid with the names of the
// parameters for a range that ends before it starts, an unknown format, or an invalid mail address.
func (s *Service) Request(ctx context.Context, acct relay.AccountID, r Request) (Order, error) {
	p := relay.Problems{}
	if r.To.Before(r.From) {
		p.Add("to_date", "The to_date must not be before the from_date.")
	}
	if r.Format != "" && r.Format != UKv3a {
		p.Add("format", "The format must be UKv3a.")
	}
	if r.Email != "" && relay.CheckAddress(r.Email) != nil {
		p.Add("email", "The email must be one mail address.")
	}
	if err := p.Err(); err != nil {
		return Order{}, err
	}
	now := s.deps.Now().UTC()
	o := Order{
		Handle: relay.NewID(now), Account: acct, Email: r.Email, Single: r.Single, RequestedAt: now,
		From: r.From.UTC(), To: r.To.UTC().Truncate(time.Second).Add(time.Second),
	}
	input, err := json.Marshal(o)
	if err != nil {
		return o, fmt.Errorf("sip: order %s: encode: %w", o.Handle, err)
	}
	return o, s.deps.Submit.Submit(ctx, job.Job{
		ID: o.Handle, Account: acct, Kind: Kind, Input: input, CreatedAt: now, Retention: HandleLifetime,
	})
}

// ArchiveReady reports whether an archive can be downloaded. It returns relay.KindNotFound for a handle
// that the account does not have, that has expired, or whose job has failed.
func (s *Service) ArchiveReady(ctx context.Context, acct relay.AccountID, handle string) (ready bool, err error) {
	j, err := s.deps.Jobs.Get(ctx, acct, handle)
	if err != nil {
		return false, err
	}
	notFound := relay.Errorf(relay.KindNotFound, "archive %s not found", handle)
	if j.Kind != Kind || j.State == job.Failed {
		return false, notFound
	}
	o, err := orderOf(j)
	if err != nil {
		return false, err
	}
	if !s.deps.Now().Before(o.ExpiresAt()) {
		return false, notFound
	}
	return j.State == job.Completed, nil
}

func orderOf(j job.Job) (o Order, err error) {
	if err = json.Unmarshal(j.Input, &o); err != nil {
		err = fmt.Errorf("sip: order %s: %w", j.ID, err)
	}
	return o, err
}

// Run makes the archive of a job and notifies the requester.
func (s *Service) Run(ctx context.Context, j job.Job) (any, error) {
	o, err := orderOf(j)
	switch {
	case err != nil:
		return nil, job.Fail("The request cannot be read.")
	case !s.deps.Now().Before(o.ExpiresAt()):
		return nil, job.Fail("The handle has expired.")
	}
	calls, err := s.deps.Archives.Make(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Email != "" {
		// The mail's ID derives from the handle, so that the mail is sent only once.
		err = s.deps.Mails.Send(ctx, o.Account, o.Handle, outbox.Notice{
			ID: o.Handle + "-ready", To: o.Email, Subject: "Your call records are ready",
			Text: fmt.Sprintf("The call records from %s to %s (UTC) are ready: %d calls.\n\n"+
				"Fetch them with your API token before %s UTC from\n%s/v2/sip/cdr/%s/download\n",
				o.From.Format(time.DateTime), o.To.Add(-time.Second).Format(time.DateTime), calls,
				o.ExpiresAt().Format(time.DateTime), s.deps.PublicURL, o.Handle),
		})
	}
	return map[string]int64{"calls": calls}, err
}

const (
	// Kind is the kind of the jobs that make archives.
	Kind job.Kind = "sip.cdr"
	// HandleLifetime is the time for which a handle is valid after the request.
	HandleLifetime = 2 * time.Hour
)

// Request describes an archive of an account's calls.
type Request struct {
	// From and To bound the starts of the calls. The second of To is included.
	From, To time.Time
	Email    string // address for a mail when the archive is ready; may be empty
	Format   string // empty means UKv3a
	Single   bool   // one file for all days instead of one for each
}

// Order is a requested archive.
type Order struct {
	Handle      string          `json:"handle"`
	Account     relay.AccountID `json:"account"`
	From        time.Time       `json:"from"`
	To          time.Time       `json:"to"` // exclusive
	Email       string          `json:"email,omitempty"`
	Single      bool            `json:"single,omitempty"`
	RequestedAt time.Time       `json:"asked_at"`
}

// ExpiresAt returns the time at which the handle becomes invalid.
func (o Order) ExpiresAt() time.Time { return o.RequestedAt.Add(HandleLifetime) }

// Trunk is a SIP trunk of an account, with the source addresses of its calls.
type Trunk struct {
	SourceIPs []string `json:"source_ips"`
}
