// Package audit records what was changed over the admin API: who, what, and how it was
// before and after. Secrets are masked before anything is recorded.
//
// An entry is saved before the change is made and completed after it, so that no change
// goes unrecorded: where the entry cannot be saved, the change is not made.
package audit

import (
	"encoding/json"
	"time"

	"github.com/penstock/penstock/relay"
)

// Outcome is how a change ended.
type Outcome string

// The outcomes. Started is a change whose end was not recorded: it is under way, or the
// gateway ended meanwhile.
const (
	Started Outcome = "started"
	Done    Outcome = "done"
	Refused Outcome = "refused" // answered 4xx: nothing was changed
	Failed  Outcome = "failed"  // answered 5xx: a part may have been changed
)

// Outcomes lists every outcome.
func Outcomes() []Outcome { return []Outcome{Started, Done, Refused, Failed} }

// OutcomeOf returns the outcome of a request by the status of its answer.
func OutcomeOf(status int) Outcome {
	switch {
	case status < 400:
		return Done
	case status < 500:
		return Refused
	}
	return Failed
}

// AdminToken is the actor of a request with the admin token; no user has this name.
const AdminToken = "admin token"

// Entry is a change.
type Entry struct {
	ID string    `json:"-"` // sorts by time
	At time.Time `json:"-"`
	// Actor is a user's name, or AdminToken.
	Actor string `json:"-"`
	// Operation is the operationId of the contract.
	Operation string `json:"-"`
	// Account is the account that the change is about; 0 for none or several.
	Account relay.AccountID `json:"-"`
	Outcome Outcome         `json:"-"`
	// Target is what was changed: an id or a name; empty for a selection.
	Target string `json:"-"`

	Role    string `json:"role"`
	Address string `json:"address"` // of the client
	Status  int    `json:"status"`  // of the answer; 0 while it is started
	// Request is what was asked for; Before and After are what it changed. All three
	// are JSON, masked, and empty where there is nothing to show.
	Request json.RawMessage `json:"request,omitempty"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}

// Filter selects entries; its zero value selects all.
type Filter struct {
	Actor, Operation, Target string
	Account                  relay.AccountID
	Outcome                  Outcome
	From, To                 time.Time
	Limit                    int
	// Cursor is the id of the last entry of the page before.
	Cursor string
}
