package inbound

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Inbox keeps the messages of desktopsms relays until they are acknowledged.
type Inbox interface {
	// Keep saves messages. One that is there, or whose acknowledgement is
	// remembered, changes nothing.
	Keep(ctx context.Context, all []Kept) error
	// Read returns a run of the messages of a relay, oldest first, and how many
	// there are.
	Read(ctx context.Context, acct account.ID, relayID string, offset, limit int) ([]Kept, int, error)
	// Acknowledge removes a message and remembers for a while that it did;
	// relay.KindNotFound if there is none.
	Acknowledge(ctx context.Context, acct account.ID, relayID, id string, remember time.Duration) error
}

// Kept is a message in the inbox of a relay.
type Kept struct {
	Account account.ID `json:"account"`
	Relay   string     `json:"relay"`
	// Labels are the action's parameters when the message came.
	Labels  []string `json:"labels,omitempty"`
	Message Message  `json:"message"`
}

// rememberAcknowledged is how long a message that was acknowledged does not
// come back when its journal record is processed again: longer than the journal
// keeps it by default.
const rememberAcknowledged = 8 * 24 * time.Hour

// ReadInbox returns a run of the messages of a virtual number's inbox, oldest
// first, and how many there are; relay.KindNotFound if the account has no such
// relay. What came while the action was desktopsms stays until acknowledged.
func (d *Desk) ReadInbox(ctx context.Context, acct account.ID, id string, offset, limit int) ([]Kept, int, error) {
	if _, err := d.Records.Get(ctx, acct, VirtualNumber, id); err != nil {
		return nil, 0, err
	}
	return d.Inbox.Read(ctx, acct, id, offset, limit)
}

// Acknowledge removes a message from a virtual number's inbox;
// relay.KindNotFound if there is no such relay or message.
func (d *Desk) Acknowledge(ctx context.Context, acct account.ID, id, message string) error {
	if _, err := d.Records.Get(ctx, acct, VirtualNumber, id); err != nil {
		return err
	}
	return d.Inbox.Acknowledge(ctx, acct, id, message, rememberAcknowledged)
}
