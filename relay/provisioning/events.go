package provisioning

import (
	"context"
	"encoding/json"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// The types of the events of an account's jobs and SIMs.
const (
	EventJobCompleted = "job.completed"
	EventJobFailed    = "job.failed"
	EventStateChanged = "sim.state_changed"
)

// notifyState sends the event of a state that a job has changed. Its id derives from
// the job's, so that it is sent once.
func (a *Actions) notifyState(ctx context.Context, j job.Job, o Order, s Settled) error {
	if s.From == s.To {
		return nil
	}
	return a.deps.Events.Notify(ctx, j.Account, outbox.Event{
		ID: "sim-" + j.ID, Type: EventStateChanged, CreatedAt: s.At, About: j.ID,
		Data: map[string]any{"iccid": o.ICCID, "previous_state": s.From, "current_state": s.To, "job_id": j.ID},
	})
}

// Ending is called before the end of a job is recorded. It releases the SIM of a job
// that failed without an operator's report, and saves the job's event. after sends
// the event; it is nil if there is nothing to send.
func (a *Actions) Ending(ctx context.Context, j job.Job, o job.Outcome) (finish func(), err error) {
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
	e := outbox.Event{ID: "job-" + j.ID, Type: EventJobCompleted, CreatedAt: a.opts.Now().UTC(), About: j.ID, Data: data}
	if o.State() == job.Failed {
		e.Type, data["error"] = EventJobFailed, o.Error
	}
	return e
}

// release releases the SIM that a failed job has reserved.
func (a *Actions) release(ctx context.Context, j job.Job, reason string) error {
	o, _ := orderOf(j)
	if o.ICCID == "" {
		return nil // the job reserves no SIM
	}
	_, err := a.save(ctx, j, o, Report{Refused: reason})
	if _, failed := job.Reason(err); failed || relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}
