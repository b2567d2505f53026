package provisioning

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// Jobs loads jobs.
type Jobs interface {
	job.Getter
	job.Lister
}

// Events sends events to an account's callback URL.
type Events interface {
	outbox.Notifier
	// Prepare saves the event without sending it; send sends it. send is nil if there
	// is nothing to send.
	Prepare(ctx context.Context, acct relay.AccountID, e outbox.Event) (send func(), err error)
}

// Action is what can be done with a SIM; its text is what the jobs of an account
// are listed with.
type Action string

// The actions that the operator of a SIM performs.
const (
	Activate      Action = "activate_sim"
	Suspend       Action = "suspend_sim"
	Unsuspend     Action = "unsuspend_sim"
	Terminate     Action = "terminate_sim"
	AddService    Action = "add_service"
	RemoveService Action = "remove_service"
)

// Command is an operation on one SIM for the operator.
type Command struct {
	// ID is the job's. An operator that gets a command with a known ID does not repeat
	// it and reports its state.
	ID      string
	Account relay.AccountID
	Action  Action
	ICCID   string
	IMSI    string
	MSISDN  string
	// Services are the services to activate with, to add or to remove.
	Services []string
	// Subscriber is the id of who has the SIM; only with Activate.
	Subscriber string
	// At is when the command was given first.
	At time.Time
}

// Report is the state of a command.
type Report struct {
	// Pending is set while the operator has not finished. The command is repeated,
	// after the time in After if the operator gave one.
	Pending bool
	After   time.Duration
	// Refused is why the operator refused the command; empty if it did not.
	Refused string
	// State is where the operator has the SIM now; empty: where it was asked to
	// bring it, or where it was if it refused.
	State sim.State
	// Simulated is set if nothing happened outside.
	Simulated bool
}

// Operator performs actions. Its errors are relay.KindUnavailable: the result of the
// command is unknown, and it is repeated.
type Operator interface {
	// Ready returns an error if no commands for a SIM are taken now.
	Ready(ctx context.Context, iccid string) error
	// Command performs a command or, if it is known, reports its state.
	Command(ctx context.Context, c Command) (Report, error)
}

// Unavailable is the error of an operator that says when to repeat the command.
type Unavailable struct {
	After time.Duration
	Cause error
}

// Error returns the cause.
func (u *Unavailable) Error() string { return u.Cause.Error() }

// Unwrap makes it relay.KindUnavailable.
func (u *Unavailable) Unwrap() error { return relay.Errorf(relay.KindUnavailable, "%w", u.Cause) }
