package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

// Runners are what does the jobs.
func (a *Actions) Runners() map[job.Kind]job.Runner {
	all := map[job.Kind]job.Runner{BulkReassign.Kind(): job.RunnerFunc(a.runReassign)}
	for _, one := range commands() {
		all[one.Kind()] = job.RunnerFunc(a.perform)
	}
	return all
}

// What a job without its SIM says.
const (
	simGone  = "The SIM is no longer there."
	simReset = "The SIM was set anew meanwhile."
)

// perform has the operator do what a job is for. It gives the same command, with
// the job's id, as often as it takes to hear the end of it, and changes the SIM
// once.
func (a *Actions) perform(ctx context.Context, j job.Job) (any, error) {
	o, err := orderOf(j)
	if err != nil {
		return nil, err
	}
	if len(j.Settled) > 0 {
		return a.conclude(ctx, j, o, j.Settled)
	}
	one, err := a.deps.SIMs.Get(ctx, j.Account, o.ICCID)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return nil, job.Fail(simGone)
	case err != nil:
		return nil, err
	case one.Job != j.ID:
		return a.bystander(ctx, j, o)
	}
	report, err := a.deps.Operator.Command(ctx, commandOf(j, o, one))
	if err != nil {
		return nil, patience(err)
	}
	if report.Pending {
		if age := a.opts.Now().Sub(j.CreatedAt); age < a.opts.ReportWithin {
			return nil, job.Pause(pauseOf(report, age))
		}
		report = Report{Refused: "The operator did not report in time.", Simulated: report.Simulated}
	}
	return a.settle(ctx, j, o, report)
}

// bystander is a run whose SIM is not the job's (any more): another run settled it
// meanwhile, or an inventory set the SIM anew.
func (a *Actions) bystander(ctx context.Context, j job.Job, o Order) (any, error) {
	now, err := a.deps.Jobs.Get(ctx, j.Account, j.ID)
	switch {
	case err != nil:
		return nil, err
	case len(now.Settled) > 0:
		return a.conclude(ctx, j, o, now.Settled)
	}
	return nil, job.Fail(simReset)
}

func commandOf(j job.Job, o Order, one SIM) Command {
	c := Command{
		ID: j.ID, Account: j.Account, Action: ActionOf(j.Kind), At: j.CreatedAt,
		ICCID: string(one.ICCID), IMSI: one.IMSI, MSISDN: one.MSISDN, Services: o.Services,
	}
	if c.Action == Activate {
		c.Subscriber = o.Subscriber
	}
	return c
}

// patience is how a failed command is tried again: when the operator says, else
// as jobs are.
func patience(err error) error {
	if u, ok := errors.AsType[*Unavailable](err); ok && u.After > 0 {
		return job.Pause(min(u.After, time.Hour))
	}
	return err
}

// pauseOf is how long an operator is left alone that has not come to an end: its
// own word, else longer and longer, up to a minute.
func pauseOf(r Report, age time.Duration) time.Duration {
	if r.After > 0 {
		return r.After
	}
	return min(max(age/2, time.Second), time.Minute)
}

// settle changes the SIM, once for this job.
func (a *Actions) settle(ctx context.Context, j job.Job, o Order, r Report) (any, error) {
	if o.New != nil && r.Refused == "" {
		if err := a.deps.Subscribers.Put(ctx, j.Account, *o.New); err != nil {
			return nil, err
		}
	}
	settled, err := a.deps.Orders.Settle(ctx, j, o.ICCID, func(one *SIM) (json.RawMessage, error) {
		if one.Job != j.ID {
			return nil, job.Fail(simReset)
		}
		b, err := json.Marshal(o.settle(one, ActionOf(j.Kind), r, a.opts.Now().UTC()))
		return b, err
	})
	if relay.KindOf(err) == relay.KindNotFound {
		return nil, job.Fail(simGone)
	}
	if err != nil {
		return nil, err
	}
	return a.conclude(ctx, j, o, settled)
}

// Result is what a completed job came to.
type Result struct {
	ICCID ICCID `json:"iccid"`
	State State `json:"current_state"`
	// Simulated is set if nothing happened outside.
	Simulated bool `json:"simulated,omitempty"`
}

// conclude tells of what a job has settled; more than once tells once.
func (a *Actions) conclude(ctx context.Context, j job.Job, o Order, b json.RawMessage) (any, error) {
	var s Settled
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("sim: job %s: settled: %w", j.ID, err)
	}
	if err := a.tellState(ctx, j, o, s); err != nil {
		return nil, err
	}
	if s.Error != "" {
		return nil, job.Fail(s.Error)
	}
	return Result{o.ICCID, s.To, s.Simulated}, nil
}
