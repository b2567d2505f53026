package relay

import (
	"errors"
	"fmt"
)

// UnopenedReason explains why a record does not open, and the remedy.
const UnopenedReason = "the record does not open: it was changed, or its key is missing; restore the record or the key from a backup"

// ErrUnopened means that what is sealed of a record does not open: the record was changed,
// or was sealed with a key that is missing.
var ErrUnopened = errors.New(UnopenedReason)

// Kind describes how a caller has to react to an error. Each surface maps every kind to one
// answer, in one table.
type Kind int

// The kinds. An error without a kind is unexpected and means 500.
const (
	KindUnexpected Kind = iota
	// KindInvalid is a request that breaks a rule; Fields names the parameters.
	KindInvalid
	// KindNotFound is a record that does not exist or belongs to another account.
	KindNotFound
	// KindUnauthenticated is a missing or unknown credential.
	KindUnauthenticated
	// KindForbidden is a known credential without the scope or permission.
	KindForbidden
	// KindConflict is a record that another holder already has.
	KindConflict
	// KindUnavailable is a back end that is down or full: try again later.
	KindUnavailable
	// KindNoCredit is a request for which the account has too little credit.
	KindNoCredit
)

// String returns the kind in words.
func (k Kind) String() string {
	names := [...]string{"unexpected", "invalid", "not found", "unauthenticated", "forbidden", "conflict", "unavailable", "no credit"}
	if k < 0 || int(k) >= len(names) {
		return names[0]
	}
	return names[k]
}

// Error is an error that a caller must react to.
type Error struct {
	Kind    Kind
	Message string
	// Fields maps a parameter to its problems; only for KindInvalid.
	Fields map[string][]string
	cause  error
}

// Error returns the message; what was wrapped is part of it.
func (e *Error) Error() string { return e.Message }

// Unwrap returns what the message wrapped with %w, if anything.
func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an error of a kind. A %w in the format keeps the cause reachable.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Invalid makes a KindInvalid error about one field.
func Invalid(field, message string) *Error {
	return &Error{Kind: KindInvalid, Message: "invalid " + field, Fields: map[string][]string{field: {message}}}
}

// KindOf returns the kind of the first Error in the chain.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindUnexpected
}

// FieldsOf returns the fields of the first Error in the chain, or nil.
func FieldsOf(err error) map[string][]string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fields
	}
	return nil
}
