package provisioning

import (
	"cmp"
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

// effect is what an action does to the state of a SIM.
type effect struct {
	states []sim.State // in which it may be asked for
	state  sim.State   // empty: the state stays
	noun   string      // names the action in a refusal
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
	e := a.effect()
	switch {
	case one.Job == id:
		return nil // it is already
	case one.Job != "":
		return sim.Refuse(relay.KindInvalid, "SIM is not eligible for "+e.noun+": another job of it is in progress.")
	case !slices.Contains(e.states, one.State):
		return sim.Refuse(relay.KindInvalid, "SIM is not eligible for "+e.noun+": it is "+string(one.State)+".")
	}
	for _, s := range o.Services {
		if ok := one.HasService(s); a == AddService && ok || a == RemoveService && !ok {
			return badService()
		}
	}
	one.Job, one.Requested = id, cmp.Or(e.state, one.State)
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
	want := cmp.Or(a.effect().state, one.State)
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
