package sip

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// Record is a call of an account.
type Record struct {
	Account account.ID
	Call    cdr.Call
}

// Place is where reading goes on: behind a call.
type Place struct {
	Start time.Time
	Key   string
}

// Calls keeps the records of calls.
type Calls interface {
	// Put keeps records durably; one whose key the account has already is left as
	// it is. An error is relay.KindUnavailable when it may work later.
	Put(ctx context.Context, records []Record) error
	// Read returns calls that start at or after from and before to, in the order
	// of their starts, behind a place (zero: from the first), at most limit.
	Read(ctx context.Context, acct account.ID, from, to time.Time, behind Place, limit int) ([]cdr.Call, error)
}

// Archives makes archives and keeps them while their handles work.
type Archives interface {
	// Make makes an archive and returns how many calls are in it; one that is made
	// already is left as it is. Work that ctx cuts off goes on, and the error is
	// relay.KindUnavailable then.
	Make(ctx context.Context, o Order) (calls int64, err error)
}

// Jobs runs what is asked for.
type Jobs interface {
	Submit(ctx context.Context, j job.Job) error
	Get(ctx context.Context, acct account.ID, id string) (job.Job, error)
}

// Deliveries saves the mail that tells of an archive.
type Deliveries interface {
	Create(ctx context.Context, ds []outbox.Delivery, leaseUntil time.Time) (existing []int, err error)
}
