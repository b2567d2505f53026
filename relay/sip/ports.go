package sip

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

// Record is a call of an account.
type Record struct {
	Account relay.AccountID
	Call    cdr.Call
}

// Cursor is the position of a call; reading continues behind it.
type Cursor struct {
	Start time.Time
	Key   string
}

// Calls stores the records of calls.
type Calls interface {
	// Put saves records durably; one whose key the account has already is unchanged.
	// The error is relay.KindUnavailable if a retry may succeed.
	Put(ctx context.Context, records []Record) error
	// Read returns calls that start at or after from and before to, in the order of
	// their starts, behind a cursor (zero: from the first), at most limit.
	Read(ctx context.Context, acct relay.AccountID, from, to time.Time, behind Cursor, limit int) ([]cdr.Call, error)
}

// Archives makes archives and keeps them while their handles work.
type Archives interface {
	// Make makes an archive and returns the number of its calls; an existing archive
	// is left unchanged. If ctx ends first, the work continues, and the error is
	// relay.KindUnavailable.
	Make(ctx context.Context, o Order) (calls int64, err error)
}

// Jobs submits and loads jobs.
type Jobs interface {
	job.Submitter
	job.Getter
}
