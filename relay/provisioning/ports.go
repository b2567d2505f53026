package provisioning

import (
	"context"
	"encoding/json"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// Orders changes SIMs and their jobs in one transaction.
type Orders interface {
	// Begin saves what change makes of a SIM together with a new job, in one step.
	// Without an error the job is saved and due. change is used as by SIMs.Change.
	Begin(ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) error) error

	// Settle saves a changed SIM together with the job's result, in one transaction,
	// and returns the result. If the job was settled before, it changes nothing and
	// returns that result. relay.KindNotFound if there is no such SIM.
	Settle(ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) (json.RawMessage, error)) (json.RawMessage, error)
}

// Jobs loads jobs.
type Jobs interface {
	Get(ctx context.Context, acct account.ID, id string) (job.Job, error)
	job.Lister
}

// Events sends events to an account's callback URL.
type Events interface {
	// Notify saves the event for the account's callback, if it has one. An event with
	// an id that was saved before is not sent again.
	Notify(ctx context.Context, acct account.ID, e outbox.Event) error
	// Prepare saves the event without sending it; send sends it. send is nil if there
	// is nothing to send.
	Prepare(ctx context.Context, acct account.ID, e outbox.Event) (send func(), err error)
}
