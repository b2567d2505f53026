package outbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Event is something that happened to an account's own, told at its callback
// URL.
type Event struct {
	// ID makes an event one event: it is the delivery's id too, and so the
	// webhook-id that is the same over all attempts.
	ID        string
	Type      string // for example token.claimed
	CreatedAt time.Time
	// About is what it is about, for who looks through deliveries: a job's id.
	About string
	Data  any
}

// Callback makes the delivery of an event to a URL.
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
