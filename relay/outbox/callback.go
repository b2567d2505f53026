package outbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/penstock/penstock/relay/account"
)

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
func Callback(acct account.ID, url string, e Event) (Delivery, error) {
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
