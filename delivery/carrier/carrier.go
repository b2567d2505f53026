// Package carrier defines the interface between the gateway and its carriers:
// each takes a short message and returns its outcome, immediately or later.
//
// The packages below implement it: smpp maintains binds to SMSCs, kannel calls a
// Kannel's sendsms, httpsms posts JSON, and simulator reports like a network.
package carrier

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Submission is one short message to one number: a single part.
type Submission struct {
	// ID is assigned by the gateway and the same for all attempts: letters,
	// digits and dashes.
	ID string
	// From is a number in digits, a short code, or an alphanumeric originator in
	// the GSM alphabet; empty uses the carrier's default.
	From string
	To   string // in digits, with the country code
	// Coding is 7 (GSM), 8 (octets) or 16 (UCS-2).
	Coding int
	UDH    []byte // with its length octet; nil if there is none
	// Data is the user data after the header: for GSM one septet per octet.
	Data []byte
	Text string // of this part; empty for octets
	// Flash messages are displayed and not stored. Replace replaces the previous
	// message from the same originator.
	Flash, Replace bool
}

// Verdict classifies the outcome of a submission.
type Verdict int

// The verdicts.
const (
	Accepted Verdict = iota + 1 // accepted by the carrier
	Rejected                    // refused permanently
	// Later means that the message was not accepted and may be retried.
	Later
	// Unknown means that the message may have been accepted: the answer was
	// lost. A retry may deliver it twice.
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

// Outcome is a verdict with its details.
type Outcome struct {
	Verdict Verdict
	ID      string // assigned by the carrier on acceptance; may be empty
	Reason  string // human-readable, also for users of the account
	// Cause is Reason with hosts and addresses, for operators; empty if it has none.
	Cause string
	// Unsent means that no carrier has received the message. With Rejected, the gateway
	// itself refused it, and its credit is refunded. With Later, the bind ended before the
	// message was written: another bind may send it at once, and the message is
	// not given up because of it. With other verdicts it is false.
	Unsent bool
	// PauseQueue means that the verdict is Later for a reason that concerns every
	// message: the carrier's rate limit, or that it cannot be reached. The message
	// does not fail because of it; the whole queue waits.
	PauseQueue bool
	// After is the delay that the carrier requests; 0 if it requests none.
	After time.Duration
}

// Carrier submits messages.
type Carrier interface {
	// Submit submits a message. It calls done with the outcome in any case, from
	// another goroutine or before it returns; HTTP carriers end with ctx, a bind
	// ends its submissions itself when it is closed. After an Unknown
	// outcome it may call done once more with the final one.
	Submit(ctx context.Context, s Submission, done func(Outcome))

	// Ready reports whether the carrier takes submissions: false while a bind is
	// down.
	Ready() bool
}

// Health keeps the last error of a carrier that is called over HTTP. Clients embed
// it. It is safe for concurrent use; the zero value has no error.
type Health struct {
	lastError atomic.Pointer[string]
}

// Ready always returns true: the protocol has no connection state.
func (h *Health) Ready() bool { return true }

// Check returns the last error that was not specific to a message.
func (h *Health) Check(context.Context) error {
	if reason := h.lastError.Load(); reason != nil {
		return errors.New(*reason)
	}
	return nil
}

// Go makes a submission in the background and passes its outcome to done. It records the
// error of an outcome that pauses the queue; other outcomes clear it, except Unknown
// ones.
func (h *Health) Go(submit func() Outcome, done func(Outcome)) {
	go func() {
		o := submit()
		if o.PauseQueue {
			h.lastError.Store(new(cmp.Or(o.Cause, o.Reason)))
		} else if o.Verdict != Unknown {
			h.lastError.Store(nil)
		}
		done(o)
	}()
}
