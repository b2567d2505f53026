package provisioning

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// Deps are the dependencies of Actions; all are required.
type Deps struct {
	SIMs        *sim.SIMs
	Subscribers *sim.Subscribers
	Jobs        *job.Store
	Operator    Operator
	Events      Events
	Submit      job.Submitter
}

// Options are optional settings; the zero value works.
type Options struct {
	// ReportWithin is the time within which the operator must finish, else the job fails; 0 means
	// 24 h.
	ReportWithin time.Duration
	// KeepJobs is the retention of a job after its end; 0 means 90 days.
	KeepJobs time.Duration
	// RunTime is the duration of one run of a job on many SIMs; 0 means 5 s.
	RunTime time.Duration
	Now     func() time.Time
}

// Actions has the operations of the package, and runs their jobs.
type Actions struct {
	deps Deps
	opts Options
}

// New returns the Actions.
func New(d Deps, o Options) *Actions {
	o.ReportWithin, o.KeepJobs = cmp.Or(o.ReportWithin, 24*time.Hour), cmp.Or(o.KeepJobs, 90*24*time.Hour)
	o.RunTime = cmp.Or(o.RunTime, 5*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Actions{d, o}
}

// Activation has the parameters of an activation.
type Activation struct {
	// Subscriber is the id of the SIM's subscriber, unless NewSubscriber is set.
	Subscriber    string
	NewSubscriber *sim.Subscriber
	Services      []string
}

// Activate requests activation of a pending SIM from the operator and returns the job that
// tracks it. The SIM changes, and a new subscriber is registered, when the job completes.
//
// It returns the refusal sim.NotFound, an Invalid error for the subscriber, a Refusal if the SIM is not
// pending or has a job in progress, and relay.KindUnavailable if the operator does not accept
// commands now. After an error, nothing is changed.
func (a *Actions) Activate(ctx context.Context, acct relay.AccountID, iccid string, activation Activation) (string, error) {
	card, err := sim.Load(ctx, a.deps.SIMs, acct, iccid)
	if err != nil {
		return "", err
	}
	o := Order{ICCID: card.ICCID, Services: activation.Services, Subscriber: activation.Subscriber}
	if activation.NewSubscriber != nil {
		subscriber := *activation.NewSubscriber
		p := relay.Problems{}
		p.AddAll("subscriber.", relay.FieldsOf(subscriber.Check([]string{"forename"})))
		if err := p.Err(); err != nil {
			return "", err
		}
		subscriber.ID = relay.NewID(a.opts.Now())
		o.Subscriber, o.NewSubscriber = subscriber.ID, &subscriber
	} else if err := a.checkSubscriber(ctx, acct, "subscriber", activation.Subscriber); err != nil {
		return "", err
	}
	return a.submitOrder(ctx, acct, card, Activate, o)
}

// checkSubscriber checks that a parameter names a subscriber of the account.
func (a *Actions) checkSubscriber(ctx context.Context, acct relay.AccountID, field, id string) error {
	if id == "" {
		return relay.Problem(field, "The %s field is required.")
	}
	_, err := a.deps.Subscribers.Get(ctx, acct, id)
	if relay.KindOf(err) == relay.KindNotFound {
		return relay.Problem(field, "The selected %s is invalid.")
	}
	return err
}

// Change requests an action, which is Suspend, Unsuspend or Terminate, from the operator and
// returns the job that tracks it. It returns the same errors as Activate.
func (a *Actions) Change(ctx context.Context, acct relay.AccountID, iccid string, action Action) (string, error) {
	card, err := sim.Load(ctx, a.deps.SIMs, acct, iccid)
	if err != nil {
		return "", err
	}
	return a.submitOrder(ctx, acct, card, action, Order{ICCID: card.ICCID})
}

// SetService requests an action, which is AddService or RemoveService, from the operator and
// returns the job that tracks it. It returns an Invalid error for the field service if the
// service is unknown, already added or not present, and otherwise the errors of Activate.
func (a *Actions) SetService(ctx context.Context, acct relay.AccountID, iccid string, action Action, service string) (string, error) {
	card, err := sim.Load(ctx, a.deps.SIMs, acct, iccid)
	if err != nil {
		return "", err
	}
	if service == "" {
		return "", relay.Problem("service", "The %s field is required.")
	}
	if service != sim.Service4G && service != sim.Service5G {
		return "", invalidService()
	}
	return a.submitOrder(ctx, acct, card, action, Order{ICCID: card.ICCID, Services: []string{service}})
}

// submitOrder reserves a SIM and saves the job in one transaction. Then it submits the job.
func (a *Actions) submitOrder(ctx context.Context, acct relay.AccountID, card sim.SIM, action Action, o Order) (string, error) {
	if err := o.begin(&card, action, "check"); err != nil { // check the SIM before calling the operator
		return "", err
	}
	if err := a.deps.Operator.Ready(ctx, string(o.ICCID)); err != nil {
		return "", err
	}
	j, err := a.newJob(acct, action, o)
	if err != nil {
		return "", err
	}
	err = a.deps.SIMs.Begin(ctx, j, o.ICCID, func(card *sim.SIM) error { return o.begin(card, action, j.ID) })
	if err != nil {
		return "", sim.ReplaceNotFound(err, sim.NotFound())
	}
	// Ignore the error, because the job is saved and due, and the sweeper submits it later. An error
	// would mean to the caller that there is no job.
	_ = a.deps.Submit.Submit(ctx, j)
	return j.ID, nil
}

func (a *Actions) newJob(acct relay.AccountID, action Action, input any) (job.Job, error) {
	now := a.opts.Now().UTC()
	b, err := json.Marshal(input)
	if err != nil {
		return job.Job{}, fmt.Errorf("provisioning: %s: encode: %w", action, err)
	}
	return job.Job{
		ID: relay.NewUUID(now), Account: acct, Kind: action.Kind(), Input: b, CreatedAt: now, Retention: a.opts.KeepJobs, List: List,
	}, nil
}

// Suspend orders the suspension of a SIM that has reached a limit. It is idempotent. It does nothing
// if the SIM is not in service or another job is about to end its service. It returns
// relay.KindUnavailable while another job of the SIM is in progress or the operator is unavailable.
func (a *Actions) Suspend(ctx context.Context, acct relay.AccountID, iccid sim.ICCID) error {
	card, err := a.deps.SIMs.Get(ctx, acct, iccid)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return nil
	case err != nil:
		return err
	case card.RequestedState != sim.Active: // without a job, RequestedState equals State
		return nil
	case card.Job != "":
		return relay.Errorf(relay.KindUnavailable, "SIM %s: another job is in progress", iccid)
	}
	_, err = a.submitOrder(ctx, acct, card, Suspend, Order{ICCID: card.ICCID})
	if relay.KindOf(err) == relay.KindInvalid {
		return relay.Errorf(relay.KindUnavailable, "SIM %s: another request reserved the SIM first: %w", iccid, err)
	}
	return err
}

// JobNotFound returns the refusal of a job that the account does not have.
func JobNotFound() error { return sim.Refuse(relay.KindNotFound, "Invalid job.") }

// Job loads a job of the account's list; the refusal JobNotFound if the list does not have the job.
func (a *Actions) Job(ctx context.Context, acct relay.AccountID, id string) (job.Job, error) {
	j, err := a.deps.Jobs.Get(ctx, acct, id)
	if err == nil && j.List != List {
		return job.Job{}, JobNotFound()
	}
	return j, sim.ReplaceNotFound(err, JobNotFound())
}

// JobFilter selects jobs; empty fields select all.
type JobFilter struct {
	State       job.State
	Action      Action
	Name        string
	NewestFirst bool // otherwise the oldest job is first
}

// ListJobs returns a page of the account's jobs in the order of their creation, and their total
// number.
func (a *Actions) ListJobs(ctx context.Context, acct relay.AccountID, f JobFilter, page relay.Page) ([]job.Job, int, error) {
	filter := job.Filter{List: List, State: f.State, Name: f.Name, NewestFirst: f.NewestFirst}
	if f.Action != "" {
		filter.Kind = f.Action.Kind()
	}
	return a.deps.Jobs.List(ctx, acct, filter, page.Offset(), page.PerPage)
}
