package models_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/sim"
)

// modelSIM is the model of a SIM. Jobs has the result of each job that has begun; the result is
// empty until the job is settled.
type modelSIM struct {
	State, Requested sim.State
	Job, Subscriber  string
	Jobs             map[string]string
}

func (m modelSIM) String() string {
	return fmt.Sprintf("%s, requested %s, job %q, subscriber %q", m.State, m.Requested, m.Job, m.Subscriber)
}

// errNotEligible is returned by the change functions of this test if the SIM is not eligible.
var errNotEligible = errors.New("not eligible")

// previousSIMStates returns the states that each requested state may follow.
func previousSIMStates() map[sim.State][]sim.State {
	return map[sim.State][]sim.State{
		sim.Active: {sim.Pending, sim.Suspended}, sim.Suspended: {sim.Active}, sim.Terminated: {sim.Active, sim.Suspended},
	}
}

const modelICCID = sim.ICCID("8944500000000000001")

func simModel() machine[modelSIM] {
	return machine[modelSIM]{
		begin: func(ctx context.Context, r *recordstest.Records, acct relay.AccountID) (modelSIM, error) {
			c := modelSIM{State: sim.Pending, Requested: sim.Pending, Jobs: map[string]string{}}
			return c, r.SIMs.Declare(ctx, acct, []sim.SIM{{ICCID: modelICCID, State: sim.Pending}}, false)
		},
		clone: func(c modelSIM) modelSIM { c.Jobs = maps.Clone(c.Jobs); return c },
		draw:  drawSIMOp,
		read: func(ctx context.Context, r *recordstest.Records, _ modelSIM, acct relay.AccountID) (string, error) {
			s, err := r.SIMs.Get(ctx, acct, modelICCID)
			return modelSIM{State: s.State, Requested: s.RequestedState, Job: s.Job, Subscriber: s.Subscriber}.String(), err
		},
		show: modelSIM.String,
	}
}

func drawSIMOp(t *rapid.T, _ modelSIM, acct relay.AccountID, now float64) op[modelSIM] {
	kind := rapid.SampledFrom([]string{"begin", "begin", "settle", "settle", "fail", "subscribe"}).Draw(t, "kind")
	if kind == "subscribe" {
		return subscribe(fmt.Sprint("subscriber-", rapid.IntRange(1, 9).Draw(t, "subscriber")), acct)
	}
	state := rapid.SampledFrom([]sim.State{sim.Active, sim.Suspended, sim.Terminated}).Draw(t, "state")
	j := job.Job{
		ID: fmt.Sprintf("%s-%d", state, rapid.IntRange(1, 5).Draw(t, "job")), Account: acct, Kind: "test", CreatedAt: dbtest.TimeAt(now),
	}
	if kind == "begin" {
		return beginSIM(j, state)
	}
	return settleSIM(j, state, kind == "fail")
}

// beginSIM reserves the SIM for a job. A job that has begun already changes nothing.
func beginSIM(j job.Job, state sim.State) op[modelSIM] {
	return newOp[modelSIM](
		"begin "+j.ID,
		func(c *modelSIM) string {
			if _, began := c.Jobs[j.ID]; began {
				return "begun"
			}
			if c.Job != "" || !slices.Contains(previousSIMStates()[state], c.State) {
				return errNotEligible.Error()
			}
			c.Job, c.Requested, c.Jobs[j.ID] = j.ID, state, ""
			return "begun"
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			return answerOrRefusal("begun", r.SIMs.Begin(ctx, j, modelICCID, func(s *sim.SIM) error {
				if s.Job != "" || !slices.Contains(previousSIMStates()[state], s.State) {
					return errNotEligible
				}
				s.Job, s.RequestedState = j.ID, state
				return nil
			}))
		},
	)
}

// settleSIM saves the operator's answer. A settled job keeps its result.
func settleSIM(j job.Job, state sim.State, failed bool) op[modelSIM] {
	result := fmt.Sprintf(`"%s %v"`, j.ID, failed)
	return newOp[modelSIM](
		fmt.Sprintf("settle %s, failed %v", j.ID, failed),
		func(c *modelSIM) string {
			if settled := c.Jobs[j.ID]; settled != "" {
				return settled
			}
			if c.Job != j.ID {
				return errNotEligible.Error()
			}
			if !failed {
				c.State = state
			}
			c.Job, c.Requested, c.Jobs[j.ID] = "", c.State, result
			return result
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			settled, err := r.SIMs.Settle(ctx, j, modelICCID, func(s *sim.SIM) (json.RawMessage, error) {
				if s.Job != j.ID {
					return nil, errNotEligible
				}
				if !failed {
					s.State = state
				}
				s.Job, s.RequestedState = "", s.State
				return json.RawMessage(result), nil
			})
			return answerOrRefusal(string(settled), err)
		},
	)
}

// subscribe changes the subscriber of the SIM, independent of jobs.
func subscribe(subscriber string, acct relay.AccountID) op[modelSIM] {
	return newOp[modelSIM](
		"assign to "+subscriber,
		func(c *modelSIM) string { c.Subscriber = subscriber; return "" },
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.SIMs.Change(ctx, acct, modelICCID, func(s *sim.SIM) error { s.Subscriber = subscriber; return nil })
			return "", err
		},
	)
}

// answerOrRefusal returns answer, or the text of errNotEligible if err is this error.
func answerOrRefusal(answer string, err error) (string, error) {
	if errors.Is(err, errNotEligible) {
		return errNotEligible.Error(), nil
	}
	return answer, err
}
