package delivery

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/penstock/penstock/delivery/guard"
)

type ownFault struct{ error }

func (f ownFault) Unwrap() error { return f.error }

// OwnFault marks an error that is ours or the operator's, not the customer's.
func OwnFault(err error) error { return ownFault{err} }

type unsendable struct{ error }

func (u unsendable) Unwrap() error { return u.error }

// Unsendable marks an error that every further attempt would meet as well,
// for example a header that cannot be written.
func Unsendable(err error) error { return unsendable{err} }

// classifyError judges an attempt without an answer. Messages are stored and
// shown, so the ways out hand over errors without secrets.
func classifyError(err error) Verdict {
	v := Verdict{Class: Retry, Reason: clip(err.Error())}
	if _, refused := errors.AsType[*guard.Error](err); refused {
		v.Class = Dead
	} else if _, never := errors.AsType[unsendable](err); never {
		v.Class = Dead
	} else if isOwnFault(err) {
		v.Class = Fault
	}
	return v
}

func isOwnFault(err error) bool {
	if _, own := errors.AsType[ownFault](err); own || errors.Is(err, context.Canceled) {
		return true
	}
	for _, exhausted := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, exhausted) {
			return true
		}
	}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	return isDNS && resolverSilent(dns)
}

// resolverSilent tells a resolver that is down or out of reach from one that
// answered about the name. net.DNSError keeps the cause as text only.
func resolverSilent(e *net.DNSError) bool {
	if e.IsNotFound {
		return false
	}
	if e.IsTimeout {
		return true
	}
	for _, text := range []string{"connection refused", "unreachable", "no route to host", "no DNS servers"} {
		if strings.Contains(e.Err, text) {
			return true
		}
	}
	return false
}
