package delivery

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery/guard"
)

// Class is what an attempt means for its delivery.
type Class int

// The classes of attempt.
const (
	// Delivered ends the delivery well.
	Delivered Class = iota + 1
	// Retry uses up an attempt; the next follows by the schedule.
	Retry
	// Dead ends the delivery until a person replays it.
	Dead
	// Fault is our own: try again soon, no attempt is used up.
	Fault
)

// String returns the class in one word.
func (c Class) String() string {
	switch c {
	case Delivered:
		return "delivered"
	case Retry:
		return "retry"
	case Dead:
		return "dead"
	case Fault:
		return "fault"
	}
	return fmt.Sprintf("class(%d)", int(c))
}

// Verdict is the judgement of one attempt.
type Verdict struct {
	Class Class
	// Reason says why it was not delivered, without secrets.
	Reason string
	// RetryAfter is how long the target asked us to wait at least, 0 if it did
	// not. Only for Retry.
	RetryAfter time.Duration
}

// Classify judges an HTTP attempt: err if there was no answer, else the status
// and headers of the answer. now reads a Retry-After that is a date.
func Classify(status int, header http.Header, err error, now time.Time) Verdict {
	switch {
	case err != nil:
		return classifyError(err)
	case status >= 200 && status <= 299:
		return Verdict{Class: Delivered}
	case status >= 300 && status <= 399:
		return Verdict{Class: Dead, Reason: redirectReason(status, header)}
	case status >= 400 && status <= 499 && !asksAgain(status):
		return Verdict{Class: Dead, Reason: statusReason(status)}
	}
	after, _ := ParseRetryAfter(header.Get("Retry-After"), now)
	return Verdict{Class: Retry, Reason: statusReason(status), RetryAfter: after}
}

// asksAgain lists the 4xx that mean "not now" instead of "no".
func asksAgain(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}

func statusReason(status int) string {
	text := http.StatusText(status)
	switch {
	case status == http.StatusGone:
		text = "Gone: the endpoint asked us to stop"
	case text == "":
		text = "unknown status"
	}
	return fmt.Sprintf("answered %d %s", status, text)
}

func redirectReason(status int, header http.Header) string {
	location := header.Get("Location")
	if location == "" {
		return statusReason(status)
	}
	return clip(fmt.Sprintf("%s: redirects to %s are not followed", statusReason(status), guard.Redact(location)))
}

// clip keeps reasons short: they are stored with every attempt.
func clip(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// ClassifyMail judges an SMTP attempt: err if the server gave no answer about
// this mail, else the code and text of its answer (RFC 5321, section 4.2.1).
func ClassifyMail(code int, text string, err error) Verdict {
	switch {
	case err != nil:
		return classifyError(err)
	case code >= 200 && code <= 299:
		return Verdict{Class: Delivered}
	case code >= 500 && code <= 599:
		return Verdict{Class: Dead, Reason: clip(fmt.Sprintf("answered %d %s", code, text))}
	}
	return Verdict{Class: Retry, Reason: clip(fmt.Sprintf("answered %d %s", code, text))}
}
