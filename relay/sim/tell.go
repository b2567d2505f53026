package sim

import (
	"context"
	"encoding/json"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// The types of the events that tell an account of its jobs and SIMs.
const (
	EventJobCompleted = "job.completed"
	EventJobFailed    = "job.failed"
	EventStateChanged = "sim.state_changed"
)

// tellState tells of a state that a job has changed. The id is the job's, so that
// it is told once.
func (a *Actions) tellState(ctx context.Context, j job.Job, o Order, s Settled) error {
	if s.From == s.To {
		return nil
	}
	return a.deps.Events.Tell(ctx, j.Account, outbox.Event{
		ID: "sim-" + j.ID, Type: EventStateChanged, CreatedAt: s.At.Truncate(time.Second), About: j.ID,
		Data: map[string]any{"iccid": o.ICCID, "previous_state": s.From, "current_state": s.To, "job_id": j.ID},
	})
}

// Ending goes before the end of a job of the list is recorded: it gives the SIM of
// a job free that failed without an end, and saves the event that tells of the
// job. after sends that; it is nil if there is nothing to send.
func (a *Actions) Ending(ctx context.Context, j job.Job, o job.Outcome) (after func(), err error) {
	if j.List != List {
		return nil, nil
	}
	if o.State() == job.Failed {
		if err := a.release(ctx, j, o.Error); err != nil {
			return nil, err
		}
	}
	return a.deps.Events.Prepare(ctx, j.Account, a.ended(j, o))
}

func (a *Actions) ended(j job.Job, o job.Outcome) outbox.Event {
	data := map[string]any{
		"id": j.ID, "action": ActionOf(j.Kind), "status": o.State(), "created_at": j.CreatedAt.UTC().Format(time.RFC3339),
	}
	var about struct {
		ICCID string `json:"iccid"`
	}
	if json.Unmarshal(j.Input, &about) == nil && about.ICCID != "" {
		data["iccid"] = about.ICCID
	}
	if j.Name != "" {
		data["name"] = j.Name
	}
	e := outbox.Event{ID: "job-" + j.ID, Type: EventJobCompleted, CreatedAt: a.opts.Now().UTC().Truncate(time.Second), About: j.ID, Data: data}
	if o.State() == job.Failed {
		e.Type, data["error"] = EventJobFailed, o.Error
	}
	return e
}

// release gives a SIM free that a failed job still holds.
func (a *Actions) release(ctx context.Context, j job.Job, reason string) error {
	o, _ := orderOf(j)
	if o.ICCID == "" {
		return nil // it holds none, as those that are no orders
	}
	_, err := a.deps.Orders.Settle(ctx, j, o.ICCID, func(one *SIM) (json.RawMessage, error) {
		if one.Job != j.ID {
			return nil, job.Fail(simReset)
		}
		return json.Marshal(o.settle(one, ActionOf(j.Kind), Report{Refused: reason}, a.opts.Now().UTC()))
	})
	if _, held := job.Reason(err); held || relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}
