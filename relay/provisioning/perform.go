package provisioning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// Runners returns the runners of the jobs, by kind. limits enforces the limits of SIMs that
// are activated.
func (a *Actions) Runners(limits sim.LimitEnforcer) map[job.Kind]job.Runner {
	p := performer{a, limits}
	runners := map[job.Kind]job.Runner{BulkReassign.Kind(): a.runReassign}
	for _, action := range []Action{Activate, Suspend, Unsuspend, Terminate, AddService, RemoveService} {
		runners[action.Kind()] = p.perform
	}
	return runners
}

type performer struct {
	*Actions
	limits sim.LimitEnforcer
}

// The errors of a job whose SIM is deleted or reset.
const (
	simGone  = "The SIM was deleted."
	simReset = "An inventory reset the SIM in the meantime."
)

// perform sends a job's command to the operator until the operator reports the result, and changes
// the SIM once.
func (p performer) perform(ctx context.Context, j job.Job) (any, error) {
	o, err := orderOf(j)
	if err != nil {
		return nil, err
	}
	if len(j.Settlement) > 0 {
		return p.finish(ctx, j, o, j.Settlement)
	}
	// 1. Load the SIM. If the job no longer reserves it, another run has settled the job, or an
	// inventory has reset the SIM.
	reserved, err := p.deps.SIMs.Get(ctx, j.Account, o.ICCID)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return nil, job.Fail(simGone)
	case err != nil:
		return nil, err
	case reserved.Job != j.ID:
		stored, err := p.deps.Jobs.Get(ctx, j.Account, j.ID)
		if err != nil {
			return nil, err
		}
		if len(stored.Settlement) > 0 {
			return p.finish(ctx, j, o, stored.Settlement)
		}
		return nil, job.Fail(simReset)
	}

	// 2. Send the command. After an error, it is repeated after the delay that the operator requests,
	// otherwise on the schedule of jobs.
	c := Command{
		ID: j.ID, Account: j.Account, Action: ActionOf(j.Kind), At: j.CreatedAt,
		ICCID: string(reserved.ICCID), IMSI: reserved.IMSI, MSISDN: reserved.MSISDN, Services: o.Services,
	}
	if c.Action == Activate {
		c.Subscriber = o.Subscriber
	}
	report, err := p.deps.Operator.Command(ctx, c)
	if u, ok := errors.AsType[*UnavailableError](err); ok && u.RetryAfter > 0 {
		return nil, job.Pause(min(u.RetryAfter, time.Hour))
	}
	if err != nil {
		return nil, err
	}

	// 3. While the operator has not finished, wait for the delay that the operator requests, or for
	// a delay that grows up to a minute.
	if report.Pending {
		age := p.opts.Now().Sub(j.CreatedAt)
		if age < p.opts.ReportWithin {
			return nil, job.Pause(cmp.Or(max(report.RetryAfter, 0), min(max(age/2, time.Second), time.Minute)))
		}
		report = Report{Refused: "The operator did not report in time.", Simulated: report.Simulated}
	}
	return p.settle(ctx, j, o, report)
}

// settle saves a new subscriber, changes the SIM once for the job, and finishes the job.
func (p performer) settle(ctx context.Context, j job.Job, o Order, r Report) (any, error) {
	if o.NewSubscriber != nil && r.Refused == "" {
		if err := p.deps.Subscribers.Put(ctx, j.Account, *o.NewSubscriber); err != nil {
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

// save changes the SIM as reported and saves the outcome. It returns JobOutcome as JSON.
func (a *Actions) save(ctx context.Context, j job.Job, o Order, r Report) (json.RawMessage, error) {
	return a.deps.SIMs.Settle(ctx, j, o.ICCID, func(card *sim.SIM) (json.RawMessage, error) {
		if card.Job != j.ID {
			return nil, job.Fail(simReset)
		}
		return json.Marshal(o.settle(card, ActionOf(j.Kind), r, a.opts.Now().UTC()))
	})
}

// Result is the result of a completed job.
type Result struct {
	ICCID sim.ICCID `json:"iccid"`
	State sim.State `json:"current_state"`
	// Simulated is set if the simulator performed the action.
	Simulated bool `json:"simulated,omitempty"`
}

// finish sends the event of a settled job and enforces the limits of a SIM that was
// activated. It is idempotent.
func (p performer) finish(ctx context.Context, j job.Job, o Order, b json.RawMessage) (any, error) {
	var s JobOutcome
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("provisioning: job %s: settled: %w", j.ID, err)
	}
	if s.From != s.To { // the id of the event derives from the job's id, so that the event is sent once
		err := p.deps.Events.Notify(ctx, j.Account, outbox.Event{
			ID: "sim-" + j.ID, Type: EventStateChanged, CreatedAt: s.At, About: j.ID,
			Data: map[string]any{"iccid": o.ICCID, "previous_state": s.From, "current_state": s.To, "job_id": j.ID},
		})
		if err != nil {
			return nil, err
		}
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

// The types of the events of an account's jobs and SIMs.
const (
	EventJobCompleted = "job.completed"
	EventJobFailed    = "job.failed"
	EventStateChanged = "sim.state_changed"
)

// Ending releases the SIM of a job that failed without an operator's report, and saves the job's
// event. Callers must call Ending before they record the end of the job. finish sends the event; it
// is nil if there is no event.
func (a *Actions) Ending(ctx context.Context, j job.Job, outcome job.Outcome) (finish func(), err error) {
	if j.List != List {
		return nil, nil
	}
	o, _ := orderOf(j) // without an ICCID, the job reserves no SIM
	failed := outcome.State() == job.Failed
	if failed && o.ICCID != "" {
		_, err := a.save(ctx, j, o, Report{Refused: outcome.Error})
		if _, isReset := job.Reason(err); err != nil && !isReset && relay.KindOf(err) != relay.KindNotFound {
			return nil, err
		}
	}
	data := map[string]any{
		"id": j.ID, "action": ActionOf(j.Kind), "status": outcome.State(), "created_at": j.CreatedAt.UTC().Format(time.RFC3339),
	}
	if o.ICCID != "" {
		data["iccid"] = string(o.ICCID)
	}
	if j.Name != "" {
		data["name"] = j.Name
	}
	e := outbox.Event{ID: "job-" + j.ID, Type: EventJobCompleted, CreatedAt: a.opts.Now().UTC(), About: j.ID, Data: data}
	if failed {
		e.Type, data["error"] = EventJobFailed, outcome.Error
	}
	return a.deps.Events.Prepare(ctx, j.Account, e)
}
