package sim

import (
	"context"
	"encoding/json"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// Orders keeps SIMs in step with the jobs that change them.
type Orders interface {
	// Begin saves what change makes of a SIM together with a new job, in one step.
	// Without an error the job is saved and due. change is used as by SIMs.Change.
	Begin(ctx context.Context, j job.Job, iccid ICCID, change func(*SIM) error) error

	// Settle saves what change makes of a SIM together with what the job came to,
	// in one step, and returns that. What was settled before stays as it is, and
	// is returned. relay.KindNotFound if there is no such SIM.
	Settle(ctx context.Context, j job.Job, iccid ICCID, change func(*SIM) (json.RawMessage, error)) (json.RawMessage, error)
}

// Jobs tells how jobs stand.
type Jobs interface {
	Get(ctx context.Context, acct account.ID, id string) (job.Job, error)
	job.Lister
}

// Events tells an account what happened, at its callback URL.
type Events interface {
	// Tell saves the event for the account's callback, if it has one. An event
	// whose id was told before is not told again.
	Tell(ctx context.Context, acct account.ID, e outbox.Event) error
	// Prepare does that but for the sending, which is up to who calls send, unless
	// it is nil.
	Prepare(ctx context.Context, acct account.ID, e outbox.Event) (send func(), err error)
}
