// Package carrier defines the interface of carriers, to which the gateway submits short
// messages; package ingest/carrier accepts theirs.
//
// The sub-packages implement the interface: smpp maintains binds to SMSCs, kannel calls a
// Kannel's sendsms, httpsms posts JSON, and simulator simulates a network.
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
	// ID is assigned by the gateway and is the same for repeated submissions: letters, digits
	// and dashes.
	ID string
	// From is a number in digits, a short code, or an alphanumeric originator in
	// the GSM alphabet; empty uses the carrier's default.
	From string
	To   string // in digits, with the country code
	// Coding is 7 (GSM), 8 (octets) or 16 (UCS-2).
	Coding int
	UDH    []byte // with its length octet; nil without a header
	// Data is the user data after the header: for GSM one septet per octet.
	Data []byte
	Text string // of this part; empty for octets
	// Flash makes the handset display the message without storing it. Replace makes it replace the
	// previous message from the same originator.
	Flash, Replace bool
}

// Verdict classifies the result of a submission.
type Verdict int

// The verdicts.
const (
	Accepted Verdict = iota + 1 // accepted by the carrier
	Rejected                    // refused permanently
	// RetryLater means that the message was not accepted and may be retried.
	RetryLater
	// Unknown means that the message may have been accepted: the answer was
	// lost. A retry may deliver it twice.
	Unknown
)

// Result is a verdict with its details.
type Result struct {
	Verdict Verdict
	ID      string // assigned by the carrier on acceptance; may be empty
	Reason  string // human-readable, also for users of the account
	// Cause is Reason with hosts and addresses, for operators; empty if Reason is complete.
	Cause string
	// NotSubmitted means that the carrier has not received the message. With Rejected, the client
	// refused the message, and its credit is refunded. With RetryLater, no bind has written the
	// message: another bind may send it at once, and the retry has no time limit.
	// With other verdicts it is false.
	NotSubmitted bool
	// PauseQueue means that the verdict is RetryLater for a reason that concerns every message: the
	// carrier throttles or cannot be reached. The whole queue waits, and the message does not
	// fail.
	PauseQueue bool
	// RetryAfter is the delay that the carrier requests; 0 if it requests none.
	RetryAfter time.Duration
}

// Carrier submits messages.
type Carrier interface {
	// Submit submits a message. It always calls done with the result, before it returns or
	// from another goroutine, and may call done once more with the final result after an
	// Unknown one. The end of ctx cancels the submission of an HTTP carrier; the end of a
	// bind completes its submissions.
	Submit(ctx context.Context, s Submission, done func(Result))

	// Ready reports whether the carrier accepts submissions: false while a bind is down.
	Ready() bool
}

// Health stores the last error of a carrier that is called over HTTP. Clients embed it. It is safe for
// concurrent use; the zero value has no error.
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

// SubmitAsync calls submit in the background and passes its result to done. It records the error of a
// result that pauses the queue. Other results, except Unknown, clear the error.
func (h *Health) SubmitAsync(submit func() Result, done func(Result)) {
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
