package relay

import (
	"errors"
	"fmt"
)

// UndecryptableReason is the reason why a record cannot be decrypted, and the remedy.
const UndecryptableReason = "the record cannot be decrypted: it was changed, or its key is missing; restore the record or the key from a backup"

// ErrUndecryptable means that the sealed part of a record cannot be decrypted: the record was changed, or its
// key is missing.
var ErrUndecryptable = errors.New(UndecryptableReason)

// Kind determines how a caller reacts to an error. Each HTTP interface has a table of the responses to
// the kinds.
type Kind int

// The kinds. An error without a kind is unexpected and means 500.
const (
	KindUnexpected Kind = iota
	// KindInvalid is an invalid request; Fields has the parameters.
	KindInvalid
	// KindNotFound is a record that does not exist or belongs to another account.
	KindNotFound
	// KindUnauthenticated is a missing or unknown credential.
	KindUnauthenticated
	// KindForbidden is a known credential without the scope or permission.
	KindForbidden
	// KindConflict is a request that the present state prevents, for example a name that is taken.
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
	// Fields has the problems by parameter, for KindInvalid.
	Fields map[string][]string
	cause  error
}

// Error returns the message. It includes the message of the wrapped error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error that Errorf wrapped with %w, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Errorf returns an error of a kind. It wraps the operand of %w in the format.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Invalid returns a KindInvalid error about one field.
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
