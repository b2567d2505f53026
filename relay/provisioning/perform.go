package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// Runners returns the runners of the jobs, by kind. They have limits enforce the limits of
// SIMs that are activated.
func (a *Actions) Runners(limits sim.LimitEnforcer) map[job.Kind]job.Runner {
	p := performer{a, limits}
	runners := map[job.Kind]job.Runner{BulkReassign.Kind(): job.RunnerFunc(a.runReassign)}
	for _, action := range commands() {
		runners[action.Kind()] = job.RunnerFunc(p.perform)
	}
	return runners
}

// performer runs the jobs that send commands to the operator.
type performer struct {
	*Actions
	limits sim.LimitEnforcer
}

// The errors of a job that has lost its SIM.
const (
	simGone  = "The SIM is no longer there."
	simReset = "The SIM was set anew meanwhile."
)

// perform sends a job's command to the operator. It repeats the same command, with
// the job's id, until the operator reports the end, and changes the SIM once.
func (p performer) perform(ctx context.Context, j job.Job) (any, error) {
	o, err := orderOf(j)
	if err != nil {
		return nil, err
	}
	if len(j.Settled) > 0 {
		return p.finish(ctx, j, o, j.Settled)
	}
	sim, err := p.deps.SIMs.Get(ctx, j.Account, o.ICCID)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return nil, job.Fail(simGone)
	case err != nil:
		return nil, err
	case sim.Job != j.ID:
		return p.superseded(ctx, j, o)
	}
	report, err := p.deps.Operator.Command(ctx, commandOf(j, o, sim))
	if err != nil {
		return nil, retryError(err)
	}
	if report.Pending {
		if age := p.opts.Now().Sub(j.CreatedAt); age < p.opts.ReportWithin {
			return nil, job.Pause(pauseOf(report, age))
		}
		report = Report{Refused: "The operator did not report in time.", Simulated: report.Simulated}
	}
	return p.settle(ctx, j, o, report)
}

// superseded handles a run whose SIM is no longer reserved for the job: another run
// has settled it, or an inventory has reset the SIM.
func (p performer) superseded(ctx context.Context, j job.Job, o Order) (any, error) {
	now, err := p.deps.Jobs.Get(ctx, j.Account, j.ID)
	switch {
	case err != nil:
		return nil, err
	case len(now.Settled) > 0:
		return p.finish(ctx, j, o, now.Settled)
	}
	return nil, job.Fail(simReset)
}

func commandOf(j job.Job, o Order, one sim.SIM) Command {
	c := Command{
		ID: j.ID, Account: j.Account, Action: ActionOf(j.Kind), At: j.CreatedAt,
		ICCID: string(one.ICCID), IMSI: one.IMSI, MSISDN: one.MSISDN, Services: o.Services,
	}
	if c.Action == Activate {
		c.Subscriber = o.Subscriber
	}
	return c
}

// retryError returns the error that retries a failed command: after the operator's
// delay if it gave one, else by the schedule of jobs.
func retryError(err error) error {
	if u, ok := errors.AsType[*Unavailable](err); ok && u.After > 0 {
		return job.Pause(min(u.After, time.Hour))
	}
	return err
}

// pauseOf returns the delay before a pending command is repeated: the operator's, else
// one that grows up to a minute.
func pauseOf(r Report, age time.Duration) time.Duration {
	if r.After > 0 {
		return r.After
	}
	return min(max(age/2, time.Second), time.Minute)
}

// settle changes the SIM, once for this job.
func (p performer) settle(ctx context.Context, j job.Job, o Order, r Report) (any, error) {
	if o.New != nil && r.Refused == "" {
		if err := p.deps.Subscribers.Put(ctx, j.Account, *o.New); err != nil {
			return nil, err
		}
	}
	settled, err := p.save(ctx, j, o, r)
	if relay.KindOf(err) == relay.KindNotFound {
		return nil, job.Fail(simGone)
	}
	if err != nil {
		return nil, err
	}
	return p.finish(ctx, j, o, settled)
}

// save saves the SIM as a report makes it, and with it what it returns, Settled as JSON.
func (a *Actions) save(ctx context.Context, j job.Job, o Order, r Report) (json.RawMessage, error) {
	return a.deps.SIMs.Settle(ctx, j, o.ICCID, func(one *sim.SIM) (json.RawMessage, error) {
		if one.Job != j.ID {
			return nil, job.Fail(simReset)
		}
		return json.Marshal(o.settle(one, ActionOf(j.Kind), r, a.opts.Now().UTC()))
	})
}

// Result is the result of a completed job.
type Result struct {
	ICCID sim.ICCID `json:"iccid"`
	State sim.State `json:"current_state"`
	// Simulated is set if the simulator performed it.
	Simulated bool `json:"simulated,omitempty"`
}

// finish sends the event of a settled job and enforces the limits of a SIM that was
// activated. It is idempotent.
func (p performer) finish(ctx context.Context, j job.Job, o Order, b json.RawMessage) (any, error) {
	var s Settled
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("provisioning: job %s: settled: %w", j.ID, err)
	}
	if err := p.notifyState(ctx, j, o, s); err != nil {
		return nil, err
	}
	if s.From != s.To && s.To == sim.Active {
		if err := p.limits.EnforceSIMs(ctx, j.Account, []sim.ICCID{o.ICCID}); err != nil {
			return nil, err
		}
	}
	if s.Error != "" {
		return nil, job.Fail(s.Error)
	}
	return Result{o.ICCID, s.To, s.Simulated}, nil
}
