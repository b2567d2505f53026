package delivery

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/delivery/guard"
)

// Class classifies the result of an attempt.
type Class int

// The classes of attempt.
const (
	// Delivered ends the delivery successfully.
	Delivered Class = iota + 1
	// Retry uses up an attempt; the next attempt follows the schedule.
	Retry
	// Dead ends the delivery until an operator replays it.
	Dead
	// Fault is an internal fault: the attempt is repeated soon and not counted.
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

// Verdict reports whether an attempt succeeded, is repeated, or ends the delivery, and why.
type Verdict struct {
	Class Class
	// Reason is the reason of the failure, without secrets and without texts of messages, for
	// operators.
	Reason string
	// Public is Reason for the users of an account, if Reason may contain hosts,
	// addresses, resolvers or paths; see PublicReason.
	Public string
	// RetryAfter is the minimum delay until the next attempt; 0 if none. Only for
	// Retry and Fault.
	RetryAfter time.Duration
}

// PublicReason returns why the delivery failed, for the users of an account.
func (v Verdict) PublicReason() string { return cmp.Or(v.Public, v.Reason) }

// Classify classifies an HTTP attempt: err if there was no response, else its
// status and headers. A Retry-After date is relative to now.
func Classify(status int, header http.Header, err error, now time.Time) Verdict {
	switch {
	case err != nil:
		return classifyError(err)
	case status >= 200 && status <= 299:
		return Verdict{Class: Delivered}
	case status >= 300 && status <= 399:
		return Verdict{Class: Dead, Reason: redirectReason(status, header)}
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests: // temporary
	case status >= 400 && status <= 499:
		return Verdict{Class: Dead, Reason: statusReason(status)}
	}
	retryAfter := ParseRetryAfter(header.Get("Retry-After"), now)
	return Verdict{Class: Retry, Reason: statusReason(status), RetryAfter: retryAfter}
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

// redirectReason names only the origin of the location, whose path may repeat the
// message.
func redirectReason(status int, header http.Header) string {
	target := "another path of the host"
	location, err := url.Parse(header.Get("Location"))
	switch {
	case err != nil || *location == url.URL{}:
		return statusReason(status)
	case location.Host != "":
		target = (&url.URL{Scheme: location.Scheme, Host: location.Host}).String()
	}
	return ClipReason(fmt.Sprintf("%s: redirects to %s are not followed", statusReason(status), target))
}

// ClipReason cuts a reason to 300 bytes and an ellipsis, because reasons are stored
// with every attempt.
func ClipReason(s string) string { return decoders.Clip(s, 300) }

// enhancedCode matches an enhanced status code of SMTP.
var enhancedCode = regexp.MustCompile(`^[245]\.[0-9]{1,3}\.[0-9]{1,3}$`)

// ClassifyMail classifies an SMTP attempt: err if the server gave no reply about
// this mail, else the reply's code and text (RFC 5321, section 4.2.1). The reason has
// no more of the text than the enhanced status code (RFC 3463): a server that refuses a
// mail may quote it.
func ClassifyMail(code int, text string, err error) Verdict {
	switch {
	case err != nil:
		return classifyError(err)
	case code >= 200 && code <= 299:
		return Verdict{Class: Delivered}
	}
	reason := fmt.Sprintf("answered %d", code)
	if enhanced, _, _ := strings.Cut(text, " "); enhancedCode.MatchString(enhanced) {
		reason += " " + enhanced
	}
	if code >= 500 && code <= 599 {
		return Verdict{Class: Dead, Reason: reason}
	}
	return Verdict{Class: Retry, Reason: reason}
}

type ownFault struct{ error }

func (f ownFault) Unwrap() error { return f.error }

// OwnFault marks an error as the gateway's or the operator's, not the
// customer's.
func OwnFault(err error) error { return ownFault{err} }

type unsendable struct{ error }

func (u unsendable) Unwrap() error { return u.error }

// Unsendable marks an error that every further attempt would repeat, for example an invalid
// header.
func Unsendable(err error) error { return unsendable{err} }

// classifyError classifies an attempt without a response. Reasons are stored and
// shown, so senders must return errors without secrets.
func classifyError(err error) Verdict {
	v := Verdict{Class: Retry, Reason: ClipReason(err.Error()), Public: PublicReason(err)}
	if _, refused := errors.AsType[*guard.Error](err); refused {
		v.Class = Dead
	} else if _, ok := errors.AsType[unsendable](err); ok {
		v.Class = Dead
	} else if isOwnFault(err) {
		v.Class = Fault
	}
	return v
}

// PublicReason returns why there was no response, for the users of an account: without
// hosts, addresses, resolvers and paths. The text of an Unsendable error describes the request
// and is returned unchanged.
func PublicReason(err error) string {
	if unsendableErr, ok := errors.AsType[unsendable](err); ok {
		return ClipReason(unsendableErr.Error())
	}
	if _, ok := errors.AsType[ownFault](err); ok {
		return "a fault of the gateway, which its operator can see"
	}
	if _, refused := errors.AsType[*guard.Error](err); refused {
		return "the address is not public"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "unknown host name"
		}
		return "the host name cannot be resolved now"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate is not valid"
	}
	if netErr, ok := errors.AsType[net.Error](err); ok && netErr.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "connection refused"
	}
	return "no connection"
}

// isOwnFault reports whether an error is a fault of the gateway or its operator. A resolver
// that is down or unreachable is such a fault; a resolver that responded about the name is
// not. net.DNSError contains the cause only as text.
func isOwnFault(err error) bool {
	if _, ok := errors.AsType[ownFault](err); ok || errors.Is(err, context.Canceled) {
		return true
	}
	resourceErrors := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}
	if slices.ContainsFunc(resourceErrors, func(e syscall.Errno) bool { return errors.Is(err, e) }) {
		return true
	}
	resolverDown := []string{"connection refused", "unreachable", "no route to host", "no DNS servers"}
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && !dns.IsNotFound &&
		(dns.IsTimeout || slices.ContainsFunc(resolverDown, func(text string) bool { return strings.Contains(dns.Err, text) }))
}
