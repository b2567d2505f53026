package rule

import (
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// Ref is the place of a rule in a list over accounts; the zero Ref is before the first.
type Ref struct {
	Account   account.ID
	CreatedAt time.Time
	ID        string
}

// AlarmFilter selects alarms of an account; the zero value selects all.
type AlarmFilter struct {
	State            State
	RuleID, DeviceID string
	From, To         time.Time // of RaisedAt, inclusive
	// Limit is the most alarms to return; Cursor is where to go on: the one that
	// the page before returned.
	Limit  int
	Cursor string
}

// Trial is a rule, or the id of a stored one, to run on the last frames of a device.
type Trial struct {
	Rule     Rule // looked at if RuleID is empty
	RuleID   string
	DeviceID string
	Last     int
}

// TrialResult is what a rule would have done with one frame.
type TrialResult struct {
	Time    time.Time
	Matched bool
	State   State
	Why     string
	// Requests are the deliveries that would have been created.
	Requests []outbox.Delivery
}
