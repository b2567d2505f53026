// Package carrier says what carriers are to who sends over them: each takes a
// short message and tells, then or later, what became of it.
//
// The carriers themselves are in the packages below: smpp keeps binds to SMSCs,
// kannel asks a Kannel's sendsms, httpsms posts JSON, and simulator reports like
// a network.
package carrier

import (
	"context"
	"time"
)

// Submission is one short message for one number: what a handset gets at once.
type Submission struct {
	// ID is ours, and the same over all attempts: letters, digits and dashes.
	ID string
	// From is a number in digits, a short code, or a name of letters and digits;
	// empty leaves it to the carrier.
	From string
	To   string // in digits, with the country code
	// Coding is 7 (GSM), 8 (octets) or 16 (UCS-2).
	Coding int
	UDH    []byte // with its length octet; nil for none
	// Data is what follows the header: for GSM one septet in each octet.
	Data []byte
	Text string // of this part; empty for octets
	// Flash is displayed at once and not kept; Replace replaces the message
	// before it from the same originator.
	Flash, Replace bool
}

// Verdict is what became of a submission.
type Verdict int

// The verdicts.
const (
	Accepted Verdict = iota + 1 // the carrier has it
	Rejected                    // it will not take it
	// Later says that it did not take it, and may another time.
	Later
	// Unknown says that it may have taken it: the answer is lost. Sent again, it
	// may arrive twice.
	Unknown
)

func (v Verdict) String() string {
	switch v {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case Later:
		return "later"
	case Unknown:
		return "unknown"
	}
	return "none"
}

// Outcome is a verdict and what was said about it.
type Outcome struct {
	Verdict Verdict
	ID      string // the carrier's, of an accepted one; some give none
	Reason  string // why not, for people
	// Throttled says that it is Later because we are too fast, or the carrier is
	// not there: it counts as no attempt, and all others wait too.
	Throttled bool
	// After is how long the carrier asks to wait; 0 if it does not say.
	After time.Duration
}

// Carrier takes submissions.
type Carrier interface {
	// Submit hands one over. It calls done when it knows what became of it, also
	// when ctx ended; from another goroutine, or before it returns. After an
	// Unknown it may call it once more, when it learns better.
	Submit(ctx context.Context, s Submission, done func(Outcome))

	// Ready reports whether there is any sense in handing something over: false
	// while a bind is down.
	Ready() bool
}
