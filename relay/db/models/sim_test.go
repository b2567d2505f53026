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

// card is the model of a SIM, with the jobs that began and what those came to that
// were settled.
type card struct {
	State, Requested sim.State
	Job, Subscriber  string
	Jobs             map[string]string
}

func (c card) String() string {
	return fmt.Sprintf("%s, requested %s, job %q, subscriber %q", c.State, c.Requested, c.Job, c.Subscriber)
}

// errNotEligible is what the changes of this test refuse a SIM with.
var errNotEligible = errors.New("not eligible")

// verbs are the state that each asks for, and those that it may follow on.
func verbs() map[sim.State][]sim.State {
	return map[sim.State][]sim.State{
		sim.Active: {sim.Pending, sim.Suspended}, sim.Suspended: {sim.Active}, sim.Terminated: {sim.Active, sim.Suspended},
	}
}

const modelICCID = sim.ICCID("8944500000000000001")

func simModel() machine[card] {
	return machine[card]{
		begin: func(ctx context.Context, r *recordstest.Records, acct relay.AccountID) (card, error) {
			c := card{State: sim.Pending, Requested: sim.Pending, Jobs: map[string]string{}}
			return c, r.SIMs.Declare(ctx, acct, []sim.SIM{{ICCID: modelICCID, State: sim.Pending}}, false)
		},
		clone: func(c card) card { c.Jobs = maps.Clone(c.Jobs); return c },
		draw:  drawSIM,
		read: func(ctx context.Context, r *recordstest.Records, _ card, acct relay.AccountID) (string, error) {
			one, err := r.SIMs.Get(ctx, acct, modelICCID)
			return card{State: one.State, Requested: one.Requested, Job: one.Job, Subscriber: one.Subscriber}.String(), err
		},
		show: card.String,
	}
}

func drawSIM(t *rapid.T, _ card, acct relay.AccountID, now float64) op[card] {
	what := rapid.SampledFrom([]string{"begin", "begin", "settle", "settle", "fail", "subscribe"}).Draw(t, "kind")
	if what == "subscribe" {
		return subscribe(fmt.Sprint("subscriber-", rapid.IntRange(1, 9).Draw(t, "subscriber")), acct)
	}
	to := rapid.SampledFrom([]sim.State{sim.Active, sim.Suspended, sim.Terminated}).Draw(t, "to")
	j := job.Job{
		ID: fmt.Sprintf("%s-%d", to, rapid.IntRange(1, 5).Draw(t, "job")), Account: acct, Kind: "test", CreatedAt: dbtest.At(now),
	}
	if what == "begin" {
		return beginSIM(j, to)
	}
	return settleSIM(j, to, what == "fail")
}

// beginSIM reserves the SIM for a job. A job that began before changes nothing.
func beginSIM(j job.Job, to sim.State) op[card] {
	return does[card](
		"begin "+j.ID,
		func(c *card) string {
			if _, began := c.Jobs[j.ID]; began {
				return "begun"
			}
			if c.Job != "" || !slices.Contains(verbs()[to], c.State) {
				return errNotEligible.Error()
			}
			c.Job, c.Requested, c.Jobs[j.ID] = j.ID, to, ""
			return "begun"
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			return eligible("begun", r.SIMs.Begin(ctx, j, modelICCID, func(one *sim.SIM) error {
				if one.Job != "" || !slices.Contains(verbs()[to], one.State) {
					return errNotEligible
				}
				one.Job, one.Requested = j.ID, to
				return nil
			}))
		},
	)
}

// settleSIM saves what the operator answered. A job that was settled before keeps what
// it came to.
func settleSIM(j job.Job, to sim.State, failed bool) op[card] {
	result := fmt.Sprintf(`"%s %v"`, j.ID, failed)
	return does[card](
		fmt.Sprintf("settle %s, failed %v", j.ID, failed),
		func(c *card) string {
			if before := c.Jobs[j.ID]; before != "" {
				return before
			}
			if c.Job != j.ID {
				return errNotEligible.Error()
			}
			if !failed {
				c.State = to
			}
			c.Job, c.Requested, c.Jobs[j.ID] = "", c.State, result
			return result
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			settled, err := r.SIMs.Settle(ctx, j, modelICCID, func(one *sim.SIM) (json.RawMessage, error) {
				if one.Job != j.ID {
					return nil, errNotEligible
				}
				if !failed {
					one.State = to
				}
				one.Job, one.Requested = "", one.State
				return json.RawMessage(result), nil
			})
			return eligible(string(settled), err)
		},
	)
}

// subscribe changes the SIM beside its jobs.
func subscribe(subscriber string, acct relay.AccountID) op[card] {
	return does[card](
		"assign to "+subscriber,
		func(c *card) string { c.Subscriber = subscriber; return "" },
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.SIMs.Change(ctx, acct, modelICCID, func(one *sim.SIM) error { one.Subscriber = subscriber; return nil })
			return "", err
		},
	)
}

func eligible(answer string, err error) (string, error) {
	if errors.Is(err, errNotEligible) {
		return errNotEligible.Error(), nil
	}
	return answer, err
}
