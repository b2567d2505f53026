package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/penstock/penstock/relay"
)

// Dispatcher makes first attempts at once. Deliveries for which it has no capacity stay due in the
// store.
type Dispatcher interface {
	Dispatch(ds []Delivery)
}

// Creator saves new deliveries. *Store implements it. Tests of other packages replace it.
type Creator interface {
	Create(ctx context.Context, ds []Delivery, leaseUntil time.Time) (created []Delivery, err error)
}

// Sender saves deliveries under a lease and dispatches their first attempts. After a crash in
// between, the deliveries are attempted when the lease expires.
type Sender struct {
	Store      Creator
	Dispatcher Dispatcher
	// Lease is the time for which a new delivery is leased for its first attempt.
	Lease time.Duration
	Now   func() time.Time // nil means time.Now
}

// Send saves deliveries and dispatches the new ones. After an error, the caller may send the same
// deliveries again.
func (s Sender) Send(ctx context.Context, ds []Delivery) error {
	created, err := s.Store.Create(ctx, ds, s.LeaseUntil())
	if err != nil {
		return err
	}
	s.Dispatch(created)
	return nil
}

// Dispatch dispatches the first attempts of deliveries that were created under a lease until
// LeaseUntil, for example by the function Create in a transaction that has been committed.
func (s Sender) Dispatch(created []Delivery) {
	if len(created) > 0 {
		s.Dispatcher.Dispatch(created)
	}
}

// LeaseUntil returns the end of the lease of deliveries that are created now.
func (s Sender) LeaseUntil() time.Time { return s.now().Add(s.Lease) }

func (s Sender) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Notifier sends events to accounts' callback URLs.
type Notifier interface {
	// Notify saves an event for the account's callback, if it has one, and dispatches
	// it. An event with a known id is not sent again.
	Notify(ctx context.Context, acct relay.AccountID, e Event) error
}

// Caller sends events to accounts' callback URLs as deliveries. It implements Notifier.
type Caller struct {
	Sender
	// CallbackURL returns an account's callback URL; empty if the account has none.
	CallbackURL func(ctx context.Context, acct relay.AccountID) (string, error)
}

// Notify sends an event to the account's callback URL, see Notifier.
func (c Caller) Notify(ctx context.Context, acct relay.AccountID, e Event) error {
	send, err := c.Prepare(ctx, acct, e)
	if err == nil && send != nil {
		send()
	}
	return err
}

// Prepare saves an event as Notify does and returns a function that dispatches it; nil if there is
// nothing to send. If the function is not called, the event is sent when the lease expires.
func (c Caller) Prepare(ctx context.Context, acct relay.AccountID, e Event) (send func(), err error) {
	url, err := c.CallbackURL(ctx, acct)
	if err != nil || url == "" {
		return nil, err
	}
	d, err := Callback(acct, url, e)
	if err != nil {
		return nil, err
	}
	created, err := c.Store.Create(ctx, []Delivery{d}, c.LeaseUntil())
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	if len(created) == 0 {
		return nil, nil
	}
	return func() { c.Dispatch(created) }, nil
}

// Event is an event of an account, sent to its callback URL.
type Event struct {
	// ID is the id of the event and of its delivery, and the header webhook-id of all attempts.
	ID        string
	Type      string // for example token.claimed
	CreatedAt time.Time
	// About is the id of the event's object, for example of a job. The message id of the delivery
	// is this id.
	About string
	Data  any
}

// Callback returns the delivery of an event to a URL.
func Callback(acct relay.AccountID, url string, e Event) (Delivery, error) {
	body, err := json.Marshal(map[string]any{
		"id": e.ID, "type": e.Type, "created_at": e.CreatedAt.UTC().Format(time.RFC3339), "data": e.Data,
	})
	if err != nil {
		return Delivery{}, fmt.Errorf("event %s: encode: %w", e.ID, err)
	}
	return Delivery{
		ID: e.ID, Account: acct, Kind: KindCallback, MessageID: e.About, CreatedAt: e.CreatedAt,
		Request: &Request{Method: http.MethodPost, URL: url, ContentType: "application/json", Body: body},
	}, nil
}

// Mailer sends notices by e-mail as deliveries.
type Mailer struct {
	Sender
	Domain string // the right side of Message-IDs; empty means localhost
}

// Notice is a mail to one address.
type Notice struct {
	ID                string // id of the delivery
	To, Subject, Text string
}

// Send sends notices of an account. objectID is the id of their object, for example the ICCID of
// a SIM, and becomes the message id of the deliveries. A notice with a known id is not sent again.
func (m Mailer) Send(ctx context.Context, acct relay.AccountID, objectID string, notices ...Notice) error {
	if len(notices) == 0 {
		return nil
	}
	now := m.now()
	mails := make([]Delivery, len(notices))
	for i, n := range notices {
		mails[i] = Delivery{
			ID: n.ID, Account: acct, Kind: KindNotice, MessageID: objectID, CreatedAt: now.Add(time.Duration(i)),
			Mail: &Mail{To: n.To, Subject: n.Subject, Text: n.Text, MessageID: n.ID + "@" + cmp.Or(m.Domain, "localhost")},
		}
	}
	return m.Sender.Send(ctx, mails)
}
