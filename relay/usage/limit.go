package usage

import "github.com/penstock/penstock/relay/account"

// Cap is what happens when a limit is reached.
type Cap string

// The caps: nothing happens, it is told, it is told and suspension is asked for.
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

// Line is a SIM as far as usage is concerned.
type Line struct {
	Subscriber, Pool string // ids; empty: none
	Limit            Limit
}

// Pool is a pool as far as usage is concerned.
type Pool struct {
	Name  string
	Limit Limit
}

// Due returns what a total asks for and was not done yet. A warning is its own;
// the cap says what the limit does. Only in the current month is anything blocked:
// what is late must not cut off what is now.
func (l Limit) Due(t Total, current bool) Steps {
	var due Steps
	if l.Warning > 0 && t.Bytes >= l.Warning {
		due |= Warned
	}
	if l.caps() && t.Bytes >= l.Monthly {
		due |= Reached
		if l.Cap == Block && current {
			due |= Blocked
		}
	}
	return due &^ t.Done
}

// caps reports whether anything happens when the limit is reached.
func (l Limit) caps() bool { return l.Monthly > 0 && (l.Cap == Notify || l.Cap == Block) }

// set reports whether there is anything to hold usage to.
func (l Limit) set() bool { return l.Warning > 0 || l.caps() }

// limited is a subject whose limit may have been crossed.
type limited struct {
	account account.ID
	subject Subject
	name    string // of a pool
	limit   Limit
}
