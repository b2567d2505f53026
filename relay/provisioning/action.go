package provisioning

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// BulkReassign assigns SIMs to another subscriber, without the operator.
const BulkReassign Action = "bulk_reassign"

// List is the name of the job list that contains SIM jobs, exports and reports.
const List = "cellular"

const kindPrefix = "sim."

// Kind returns the kind of the jobs that perform an action.
func (a Action) Kind() job.Kind { return job.Kind(kindPrefix + string(a)) }

// ActionOf returns the action of a kind of job.
func ActionOf(k job.Kind) Action { return Action(strings.TrimPrefix(string(k), kindPrefix)) }

type effect struct {
	states []sim.State // states in which a SIM is eligible for the action
	state  sim.State   // state after the action; empty if the action does not change it
	name   string      // name of the action in a refusal
}

func (a Action) effect() effect {
	switch a {
	case Activate:
		return effect{[]sim.State{sim.Pending}, sim.Active, "activation"}
	case Suspend:
		return effect{[]sim.State{sim.Active}, sim.Suspended, "suspension"}
	case Unsuspend:
		return effect{[]sim.State{sim.Suspended}, sim.Active, "unsuspension"}
	case Terminate:
		return effect{[]sim.State{sim.Active, sim.Suspended}, sim.Terminated, "termination"}
	case AddService, RemoveService:
		return effect{[]sim.State{sim.Active}, "", "a change of its services"}
	}
	return effect{}
}

// Order is the input of a job on one SIM.
type Order struct {
	ICCID    sim.ICCID `json:"iccid"`
	Services []string  `json:"services,omitempty"`
	// Subscriber is the new subscriber of the SIM. NewSubscriber is set if the job creates it.
	Subscriber    string          `json:"subscriber,omitempty"`
	NewSubscriber *sim.Subscriber `json:"new,omitempty"`
}

func orderOf(j job.Job) (o Order, err error) {
	if err = json.Unmarshal(j.Input, &o); err != nil {
		err = fmt.Errorf("provisioning: job %s: input: %w", j.ID, err)
	}
	return o, err
}

// begin reserves a SIM for a job. It returns a Refusal if the SIM is not eligible.
func (o Order) begin(card *sim.SIM, a Action, id string) error {
	e := a.effect()
	switch {
	case card.Job == id:
		return nil // the SIM is already reserved
	case card.Job != "":
		return sim.Refuse(relay.KindInvalid, "SIM is not eligible for "+e.name+": another job of the SIM is in progress.")
	case !slices.Contains(e.states, card.State):
		return sim.Refuse(relay.KindInvalid, "SIM is not eligible for "+e.name+": it is "+string(card.State)+".")
	}
	for _, s := range o.Services {
		if ok := card.HasService(s); a == AddService && ok || a == RemoveService && !ok {
			return invalidService()
		}
	}
	card.Job, card.RequestedState = id, cmp.Or(e.state, card.State)
	return nil
}

// invalidService returns the error for an unknown service, for adding a service that the SIM has, and
// for removing one that the SIM lacks.
func invalidService() error { return relay.Invalid("service", "The selected service is invalid.") }

// JobOutcome is the outcome of a job, saved in one transaction with its changes.
type JobOutcome struct {
	From  sim.State `json:"from"`
	To    sim.State `json:"to"`
	Error string    `json:"error,omitempty"` // reason for the failure
	At    time.Time `json:"at"`
	// Simulated is set if the simulator performed the command.
	Simulated bool `json:"simulated,omitempty"`
}

// settle releases a SIM and changes it according to the operator's report.
func (o Order) settle(card *sim.SIM, a Action, r Report, now time.Time) JobOutcome {
	outcome := JobOutcome{From: card.State, At: now, Error: r.Refused, Simulated: r.Simulated}
	newState := cmp.Or(a.effect().state, card.State)
	if r.Refused == "" {
		card.State = newState
		switch a {
		case Activate:
			card.Service4G, card.Service5G = slices.Contains(o.Services, sim.Service4G), slices.Contains(o.Services, sim.Service5G)
			card.Subscriber = o.Subscriber
		case AddService, RemoveService:
			for _, s := range o.Services {
				card.SetService(s, a == AddService)
			}
		}
	}
	if r.State != "" {
		card.State = r.State
		if r.Refused == "" && r.State != newState {
			outcome.Error = "The operator reports the SIM as " + string(r.State) + "."
		}
	}
	card.Job, card.RequestedState, outcome.To = "", card.State, card.State
	return outcome
}

// Events sends events to an account's callback URL.
type Events interface {
	outbox.Notifier
	// Prepare saves an event. The caller calls send to send the event; send is nil if there is
	// nothing to send.
	Prepare(ctx context.Context, acct relay.AccountID, e outbox.Event) (send func(), err error)
}

// Action is an operation on a SIM. Its text appears in job lists.
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

// Command asks the operator for an operation on one SIM.
type Command struct {
	// ID is the id of the job. An operator that receives a known ID does not perform the command
	// again, and reports the state of the command.
	ID      string
	Account relay.AccountID
	Action  Action
	ICCID   string
	IMSI    string
	MSISDN  string
	// Services are the services to activate with, to add or to remove.
	Services []string
	// Subscriber is the id of the SIM's subscriber; only with Activate.
	Subscriber string
	// At is the time at which the job was created.
	At time.Time
}

// Report is the state of a command.
type Report struct {
	// Pending is set while the operator has not finished. The command is repeated after the duration
	// RetryAfter, or, if it is 0, after a default.
	Pending    bool
	RetryAfter time.Duration
	// Refused is the reason of a refusal by the operator; empty if the command was not refused.
	Refused string
	// State is the SIM's state at the operator. Empty means the state after the action, or, if
	// the operator refused, the state before it.
	State     sim.State
	Simulated bool // the simulator performed the command
}

// Operator performs actions. An error of relay.KindUnavailable means that the result of the command
// is unknown; the command is repeated.
type Operator interface {
	// Ready returns an error if the operator does not accept commands for a SIM now.
	Ready(ctx context.Context, iccid string) error
	// Command performs a command or, if it is known, reports its state.
	Command(ctx context.Context, c Command) (Report, error)
}

// UnavailableError is the error of an operator that requests a delay before the command is repeated.
type UnavailableError struct {
	RetryAfter time.Duration
	Cause      error
}

// Error returns the cause.
func (u *UnavailableError) Error() string { return u.Cause.Error() }

// Unwrap returns the cause as a relay.KindUnavailable error.
func (u *UnavailableError) Unwrap() error { return relay.Errorf(relay.KindUnavailable, "%w", u.Cause) }
