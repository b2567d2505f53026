package message

import "slices"

// State is the state of a part.
type State string

// The states. Pending is the specification's; the others follow the delivery
// report codes.
const (
	// Pending is registered and paid for, and not yet sent.
	Pending State = "pending"
	// Sending is handed to a carrier that has not answered. After a crash it is
	// not known whether the carrier has it.
	Sending State = "sending"
	// Accepted is taken by the carrier.
	Accepted State = "accepted"
	// Buffered waits in the network for the phone.
	Buffered State = "buffered"
	// Delivered has reached the phone. An end.
	Delivered State = "delivered"
	// Undelivered was refused by the phone, expired or was dropped on the way. An
	// end.
	Undelivered State = "undelivered"
	// Rejected was refused by the carrier, or no carrier would take it. An end.
	Rejected State = "rejected"
	// Unknown was submitted to a carrier whose answer was lost, or was due when the
	// database was put back to an earlier state, or when its record did not open. It is not
	// retried automatically; a receipt or an operator resolves it.
	Unknown State = "unknown"
	// Removed was deleted by the account while pending, and refunded. An end.
	Removed State = "removed"
)

// States lists them all, in the order of a message's life.
func States() []State {
	return []State{Pending, Sending, Accepted, Buffered, Delivered, Undelivered, Rejected, Unknown, Removed}
}

// Ended reports whether nothing changes the state any more.
func (s State) Ended() bool {
	return slices.Contains([]State{Delivered, Undelivered, Rejected, Removed}, s)
}

// Waiting reports whether the part is still to be submitted or being submitted.
func (s State) Waiting() bool { return s == Pending || s == Sending }

// Code is a delivery report code, %code.
type Code int

// The codes (specification 1, states and transitions).
const (
	CodeDelivered   Code = 1
	CodeUndelivered Code = 2 // from the handset
	CodeBuffered    Code = 4
	CodeAccepted    Code = 8  // by the SMSC
	CodeRejected    Code = 16 // by the SMSC
)

// Code returns the code that a state is reported as; 0 if it is not reported.
func (s State) Code() Code {
	switch s {
	case Accepted:
		return CodeAccepted
	case Buffered:
		return CodeBuffered
	case Delivered:
		return CodeDelivered
	case Undelivered:
		return CodeUndelivered
	case Rejected:
		return CodeRejected
	}
	return 0
}

// State returns the state of a code; false for a number that is not a code.
func (c Code) State() (State, bool) {
	for _, s := range States() {
		if s.Code() == c && c != 0 {
			return s, true
		}
	}
	return "", false
}

// From lists the states that s may follow. Receipts come in any order: a final state
// stays, and a message in the network is not accepted again.
func (s State) From() []State {
	switch s {
	case Removed, Sending:
		return []State{Pending}
	case Unknown:
		return []State{Sending}
	case Pending: // a retry; for an unknown part the operator's decision
		return []State{Sending, Unknown}
	case Accepted:
		return []State{Sending, Unknown}
	case Buffered:
		return []State{Sending, Unknown, Accepted}
	}
	return []State{Pending, Sending, Unknown, Accepted, Buffered} // the ends
}

// Code is the code that a message is reported with, and the part that decided it:
// a message fails with its first failed part and succeeds when all parts have.
// Removed parts do not count. 0 while there is nothing to report.
func (m *Message) Code() (code Code, part int) {
	minimum := -1 // the part that is least far
	for n := range m.Parts {
		switch s := m.Parts[n].State; {
		case s == Removed:
		case s == Undelivered || s == Rejected:
			return s.Code(), n
		case minimum < 0 || rank(s) <= rank(m.Parts[minimum].State):
			minimum = n
		}
	}
	if minimum < 0 {
		return 0, 0
	}
	return m.Parts[minimum].State.Code(), minimum
}

// rank orders the successful states; the part with the lowest rank decides for the message.
// Buffered is below Accepted although it follows it: the delivery report names one part that
// waits for the phone.
func rank(s State) int {
	return slices.Index([]State{Pending, Sending, Unknown, Buffered, Accepted, Delivered}, s)
}
