package message

import "slices"

// State is the state of a part.
type State string

// The states. Delivered, Undelivered, Rejected and Removed are final. State.Code returns the delivery
// report code of a state.
const (
	// Pending means that the part is paid for and not yet sent.
	Pending State = "pending"
	// Sending means that the part is being submitted, and that its outcome is not saved. After
	// a crash the carrier may or may not have accepted it.
	Sending State = "sending"
	// Accepted means that the carrier has accepted the part.
	Accepted State = "accepted"
	// Buffered means that the network stores the part until the phone can be reached.
	Buffered State = "buffered"
	// Delivered means that the phone has received the part.
	Delivered State = "delivered"
	// Undelivered means that the phone refused the part, or that it expired or was dropped.
	Undelivered State = "undelivered"
	// Rejected means that the carrier refused the part, or that no carrier accepted it.
	Rejected State = "rejected"
	// Unknown means that the carrier's answer was lost, or that the part was due when the
	// database was restored to an earlier state or while its record could not be decrypted. The
	// part is not submitted again, unless a late answer of the carrier asks for a retry or an
	// operator resends it. A late answer or a receipt changes the state.
	Unknown State = "unknown"
	// Removed means that the account deleted the pending part, which was refunded.
	Removed State = "removed"
)

// States returns all states in the order of a message's life.
func States() []State {
	return []State{Pending, Sending, Accepted, Buffered, Delivered, Undelivered, Rejected, Unknown, Removed}
}

// Ended reports whether the state is final.
func (s State) Ended() bool {
	return slices.Contains([]State{Delivered, Undelivered, Rejected, Removed}, s)
}

// Waiting reports whether the part is still to be submitted or being submitted.
func (s State) Waiting() bool { return s == Pending || s == Sending }

// Code is a delivery report code, %code.
type Code int

// The codes of delivery reports.
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

// From returns the states that s may follow; MarkUnknown also changes Pending to Unknown. Receipts
// arrive in any order: a final state stays, and a part that the network has buffered does not
// become Accepted.
func (s State) From() []State {
	switch s {
	case Removed, Sending:
		return []State{Pending}
	case Unknown:
		return []State{Sending}
	case Pending: // a retry, or for an Unknown part also a resend by an operator
		return []State{Sending, Unknown}
	case Accepted:
		return []State{Sending, Unknown}
	case Buffered:
		return []State{Sending, Unknown, Accepted}
	}
	return []State{Pending, Sending, Unknown, Accepted, Buffered} // s is final
}

// Code returns the code that a message is reported with, and the part that decides it: the
// first failed part, otherwise the part with the lowest rank. Removed parts do not count. The
// code is 0 if there is nothing to report.
func (m *Message) Code() (code Code, part int) {
	lowestPart := -1 // the part with the lowest rank
	for n := range m.Parts {
		switch s := m.Parts[n].State; {
		case s == Removed:
		case s == Undelivered || s == Rejected:
			return s.Code(), n
		case lowestPart < 0 || rank(s) <= rank(m.Parts[lowestPart].State):
			lowestPart = n
		}
	}
	if lowestPart < 0 {
		return 0, 0
	}
	return m.Parts[lowestPart].State.Code(), lowestPart
}

// rank orders the states without a failure. Buffered is below Accepted although it follows
// Accepted, so that a message is reported as buffered while any part waits for the phone.
func rank(s State) int {
	return slices.Index([]State{Pending, Sending, Unknown, Buffered, Accepted, Delivered}, s)
}
