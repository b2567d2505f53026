package inbound

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Inbox stores the messages of desktopsms relays until they are acknowledged.
type Inbox interface {
	// Keep saves messages. It skips those that are already stored and those whose
	// acknowledgement is remembered.
	Keep(ctx context.Context, all []InboxMessage) error
	// Read returns a page of a relay's messages, oldest first, and the total.
	Read(ctx context.Context, acct account.ID, relayID string, offset, limit int) ([]InboxMessage, int, error)
	// Acknowledge removes a message and remembers its id for a while;
	// relay.KindNotFound if there is none.
	Acknowledge(ctx context.Context, acct account.ID, relayID, id string, remember time.Duration) error
}

// InboxMessage is a message in the inbox of a relay.
type InboxMessage struct {
	Account account.ID `json:"account"`
	Relay   string     `json:"relay"`
	// Labels are the action's parameters when the message was received.
	Labels  []string `json:"labels,omitempty"`
	Message Message  `json:"message"`
}

// rememberAcknowledged is how long acknowledged ids are remembered, so that
// processing a journal record again does not restore its message. It exceeds the
// default retention of the journal.
const rememberAcknowledged = 8 * 24 * time.Hour

// ReadInbox returns a page of the messages in a virtual number's inbox, oldest
// first, and the total; relay.KindNotFound if the account has no such relay.
// Messages stay in the inbox until acknowledged, also when the action changes.
func (s *RelayService) ReadInbox(ctx context.Context, acct account.ID, id string, offset, limit int) ([]InboxMessage, int, error) {
	if _, err := s.Records.Get(ctx, acct, VirtualNumber, id); err != nil {
		return nil, 0, err
	}
	return s.Inbox.Read(ctx, acct, id, offset, limit)
}

// Acknowledge removes a message from a virtual number's inbox;
// relay.KindNotFound if there is no such relay or message.
func (s *RelayService) Acknowledge(ctx context.Context, acct account.ID, id, message string) error {
	if _, err := s.Records.Get(ctx, acct, VirtualNumber, id); err != nil {
		return err
	}
	return s.Inbox.Acknowledge(ctx, acct, id, message, rememberAcknowledged)
}
