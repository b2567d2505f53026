package usage

import "github.com/penstock/penstock/relay/account"

// Cap is the action taken when a limit is reached.
type Cap string

// The caps: no action; notify; notify and suspend.
const (
	NoCap  Cap = "none"
	Notify Cap = "notify"
	Block  Cap = "block"
)

// Limit is how much may be used in a month.
type Limit struct {
	Monthly, Warning int64 // bytes; 0: none
	Cap              Cap
	Recipients       []string // addresses
}

// SIM is the part of a SIM that usage needs.
type SIM struct {
	Subscriber, Pool string // ids; empty: none
	Limit            Limit
	OutOfService     bool // or about to leave service
}

// Pool is the part of a pool that usage needs.
type Pool struct {
	Name  string
	Limit Limit
}

// Due returns the steps that a total requires and that are not done yet. The warning
// is independent of the cap, which says what happens at the limit.
func (l Limit) Due(t Total) Steps {
	var due Steps
	if l.Warning > 0 && t.Bytes >= l.Warning {
		due |= Warned
	}
	if l.caps() && t.Bytes >= l.Monthly {
		due |= Reached
	}
	return due &^ t.Done
}

// caps reports whether anything happens when the limit is reached.
func (l Limit) caps() bool { return l.Monthly > 0 && (l.Cap == Notify || l.Cap == Block) }

// blocks reports whether what reaches the limit is taken out of service.
func (l Limit) blocks() bool { return l.caps() && l.Cap == Block }

// set reports whether there is anything to hold usage to.
func (l Limit) set() bool { return l.Warning > 0 || l.caps() }

// limited is a subject whose limit may have been crossed.
type limited struct {
	account account.ID
	subject Subject
	name    string // of a pool
	limit   Limit
}
