package sip

import (
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

const (
	// Kind is the kind of the jobs that make archives.
	Kind job.Kind = "sip.cdr"
	// Life is the time for which a handle is valid after the request.
	Life = 2 * time.Hour
)

// Request describes an archive of an account's calls.
type Request struct {
	// From and To bound the starts of the calls; the second of To is included.
	From, To time.Time
	Email    string // gets a mail when the archive is ready; may be empty
	Format   string // empty means UKv3a
	Single   bool   // one file instead of one for each day
}

// Order is a requested archive.
type Order struct {
	Handle  string          `json:"handle"`
	Account relay.AccountID `json:"account"`
	From    time.Time       `json:"from"`
	To      time.Time       `json:"to"` // exclusive
	Email   string          `json:"email,omitempty"`
	Single  bool            `json:"single,omitempty"`
	AskedAt time.Time       `json:"asked_at"`
}

// ExpiresAt returns when the handle becomes invalid.
func (o Order) ExpiresAt() time.Time { return o.AskedAt.Add(Life) }

// check returns the invalid fields of a request.
func (a Request) check() error {
	p := relay.Problems{}
	if a.To.Before(a.From) {
		p.Add("to_date", "The to_date must not be before the from_date.")
	}
	if a.Format != "" && a.Format != UKv3a {
		p.Add("format", "The format must be UKv3a.")
	}
	if a.Email != "" && relay.CheckAddress(a.Email) != nil {
		p.Add("email", "The email must be one mail address.")
	}
	return p.Err()
}

// Trunk lists the source addresses of an account's calls.
type Trunk struct {
	SourceIPs []string `json:"source_ips"`
}
