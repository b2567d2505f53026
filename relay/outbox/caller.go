package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/penstock/penstock/relay"
)

// Notifier sends events to accounts' callback URLs.
type Notifier interface {
	// Notify saves an event for the account's callback, if it has one, and dispatches
	// it. An event whose id was saved before is not sent again.
	Notify(ctx context.Context, acct relay.AccountID, e Event) error
}

// Caller sends events to accounts' callback URLs as deliveries: retried, signed
// and listed. It implements Notifier.
type Caller struct {
	Sender
	// CallbackURL returns an account's callback URL, empty if it has none.
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

// Prepare saves an event like Notify and returns the function that dispatches it,
// nil if there is nothing to send. If send is not called, the event is sent when
// the lease expires.
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
	// ID identifies the event. It is also the delivery's id, and so the webhook-id,
	// which is the same in all attempts.
	ID        string
	Type      string // for example token.claimed
	CreatedAt time.Time
	// About is the object of the event, for searches of deliveries: a job's id.
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
