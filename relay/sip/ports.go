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
