package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/penstock/penstock/delivery/guard"
)

type ownFault struct{ error }

func (f ownFault) Unwrap() error { return f.error }

// OwnFault marks an error as the gateway's or the operator's, not the
// customer's.
func OwnFault(err error) error { return ownFault{err} }

type unsendable struct{ error }

func (u unsendable) Unwrap() error { return u.error }

// Unsendable marks an error that every further attempt would have too, for
// example an invalid header.
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
// hosts, addresses, resolvers and paths. The text of an error that is Unsendable is about
// what was to be sent, and is returned as it is.
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
	if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "connection refused"
	}
	return "no connection"
}

func isOwnFault(err error) bool {
	if _, ok := errors.AsType[ownFault](err); ok || errors.Is(err, context.Canceled) {
		return true
	}
	exhausted := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	return slices.ContainsFunc(exhausted, func(e syscall.Errno) bool { return errors.Is(err, e) }) || isDNS && resolverSilent(dns)
}

// resolverSilent distinguishes a resolver that is down or unreachable from one
// that answered about the name. net.DNSError keeps the cause as text only.
func resolverSilent(e *net.DNSError) bool {
	if e.IsNotFound {
		return false
	}
	silent := []string{"connection refused", "unreachable", "no route to host", "no DNS servers"}
	return e.IsTimeout || slices.ContainsFunc(silent, func(text string) bool { return strings.Contains(e.Err, text) })
}
