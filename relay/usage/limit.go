package usage

import (
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
)

// limited is a subject whose limit may have been crossed.
type limited struct {
	account    account.ID
	subject    Subject
	name       string // of a pool
	limit      sim.Limit
	recipients []sim.Recipient
}

// due returns the steps that a total requires and that are not done yet. The warning
// is independent of the cap, which says what happens at the limit.
func (l limited) due(t Total) Steps {
	var due Steps
	if l.limit.Warning > 0 && t.Bytes >= l.limit.Warning {
		due |= Warned
	}
	if l.limit.Caps() && t.Bytes >= l.limit.Monthly {
		due |= Reached
	}
	return due &^ t.Done
}
