package provisioning

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// BulkReassign gives SIMs another subscriber; no operator is asked.
const BulkReassign Action = "bulk_reassign"

// List is the list that the jobs of an account's SIMs stand in, also those that
// make exports and reports.
const List = "cellular"

// kinds begin with this.
const kindPrefix = "sim."

// Kind returns the kind of the jobs that perform an action.
func (a Action) Kind() job.Kind { return job.Kind(kindPrefix + string(a)) }

// ActionOf is what a job of the list does.
func ActionOf(k job.Kind) Action { return Action(strings.TrimPrefix(string(k), kindPrefix)) }

// commands lists what an operator is asked for.
func commands() []Action {
	return []Action{Activate, Suspend, Unsuspend, Terminate, AddService, RemoveService}
}

// from lists the states in which an action may be asked for.
func (a Action) from() []sim.State {
	switch a {
	case Activate:
		return []sim.State{sim.Pending}
	case Suspend, AddService, RemoveService:
		return []sim.State{sim.Active}
	case Unsuspend:
		return []sim.State{sim.Suspended}
	case Terminate:
		return []sim.State{sim.Active, sim.Suspended}
	}
	return nil
}

// to returns the state after an action.
func (a Action) to(now sim.State) sim.State {
	switch a {
	case Activate, Unsuspend:
		return sim.Active
	case Suspend:
		return sim.Suspended
	case Terminate:
		return sim.Terminated
	}
	return now
}

// noun names the action in a refusal.
func (a Action) noun() string {
	switch a {
	case Activate:
		return "activation"
	case Suspend:
		return "suspension"
	case Unsuspend:
		return "unsuspension"
	case Terminate:
		return "termination"
	}
	return "a change of its services"
}

// Order is what a job is to do with a SIM: the input of the job.
type Order struct {
	ICCID    sim.ICCID `json:"iccid"`
	Services []string  `json:"services,omitempty"`
	// Subscriber gets the SIM; New is set if it has to be created, with its id.
	Subscriber string          `json:"subscriber,omitempty"`
	New        *sim.Subscriber `json:"new,omitempty"`
}

// orderOf reads the input of a job.
func orderOf(j job.Job) (o Order, err error) {
	if err = json.Unmarshal(j.Input, &o); err != nil {
		err = fmt.Errorf("provisioning: job %s: input: %w", j.ID, err)
	}
	return o, err
}

// begin reserves a SIM for a job, or refuses.
func (o Order) begin(one *sim.SIM, a Action, id string) error {
	switch {
	case one.Job == id:
		return nil // it is already
	case one.Job != "":
		return sim.Refuse(relay.KindInvalid, "SIM is not eligible for "+a.noun()+": another job of it is in progress.")
	case !slices.Contains(a.from(), one.State):
		return sim.Refuse(relay.KindInvalid, "SIM is not eligible for "+a.noun()+": it is "+string(one.State)+".")
	}
	for _, s := range o.Services {
		if has := one.HasService(s); a == AddService && has || a == RemoveService && !has {
			return badService()
		}
	}
	one.Job, one.Requested = id, a.to(one.State)
	return nil
}

// badService is the refusal of a service that there is not, that the SIM has
// already, or has not.
func badService() error { return relay.Invalid("service", "The selected service is invalid.") }

// Settled is the outcome of a job, saved in one transaction with its changes.
type Settled struct {
	From  sim.State `json:"from"`
	To    sim.State `json:"to"`
	Error string    `json:"error,omitempty"` // why it failed
	At    time.Time `json:"at"`
	// Simulated is set if nothing happened outside.
	Simulated bool `json:"simulated,omitempty"`
}

// settle gives a SIM free and makes it what the operator reports.
func (o Order) settle(one *sim.SIM, a Action, r Report, now time.Time) Settled {
	s := Settled{From: one.State, At: now, Error: r.Refused, Simulated: r.Simulated}
	want := a.to(one.State)
	if r.Refused == "" {
		o.apply(one, a)
		one.State = want
	}
	if r.State != "" {
		one.State = r.State
		if r.Refused == "" && r.State != want {
			s.Error = "The operator reports the SIM as " + string(r.State) + "."
		}
	}
	one.Job, one.Requested, s.To = "", one.State, one.State
	return s
}

// apply makes the changes other than that of the state.
func (o Order) apply(one *sim.SIM, a Action) {
	switch a {
	case Activate:
		one.Service4G, one.Service5G = slices.Contains(o.Services, sim.Service4G), slices.Contains(o.Services, sim.Service5G)
		one.Subscriber = o.Subscriber
	case AddService, RemoveService:
		for _, s := range o.Services {
			one.SetService(s, a == AddService)
		}
	}
}
