package inbound

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Relays finds the relays that numbers may take.
type Relays interface {
	// Version changes with every change to any relay.
	Version(ctx context.Context) (int64, error)
	// Candidates returns for each number, in the numbers' order, the virtual
	// number that it is and the geographic relays whose prefix it begins with,
	// of all accounts, in any order.
	Candidates(ctx context.Context, numbers []string) ([][]Relay, error)
}

// Claims maps carriers' message ids to our messages.
type Claims interface {
	// Claim assigns each key to its holder, unless another has it, for at least ttl from
	// now, and returns the holder of each, in order.
	Claim(ctx context.Context, claims []Claim, ttl time.Duration) ([]string, error)
	// Holder returns the holder of a key, "" if there is none.
	Holder(ctx context.Context, key string) (string, error)
}

// Claim is a carrier's id that one of our messages claims.
type Claim struct {
	Key    string
	Holder string // the message's id
}

// Inbox stores the messages of desktopsms relays until they are acknowledged.
type Inbox interface {
	// Keep saves messages. It skips those that are already stored and those whose
	// acknowledgement is remembered.
	Keep(ctx context.Context, all []InboxMessage) error
	// Read returns a page of a relay's messages, oldest first, and the total.
	Read(ctx context.Context, acct relay.AccountID, relayID string, offset, limit int) ([]InboxMessage, int, error)
	// Acknowledge removes a message and remembers its id for a while;
	// relay.KindNotFound if there is none.
	Acknowledge(ctx context.Context, acct relay.AccountID, relayID, id string, remember time.Duration) error
}

// InboxMessage is a message in the inbox of a relay.
type InboxMessage struct {
	Account relay.AccountID `json:"account"`
	Relay   string          `json:"relay"`
	// Labels are the action's parameters when the message was received.
	Labels  []string `json:"labels,omitempty"`
	Message Message  `json:"message"`
}
