package provisioning_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

// fixture has Actions with real stores and implements their operator and their notifier. The
// test runs the jobs.
type fixture struct {
	t  *testing.T
	db *recordstest.Records
	a  *provisioning.Actions

	clock     *relaytest.Clock
	commands  []string // as "<action> <iccid> <services>"
	events    map[string]outbox.Event
	sent      []string    // the ids of sent events
	enforced  []sim.ICCID // the SIMs with enforced limits
	readyErr  error       // the error of Ready, if any
	submitErr error       // the error of Submit, if any
	answer    func(c provisioning.Command) (provisioning.Report, error)
}

func newFixture(t *testing.T) *fixture { return newFixtureWith(t, provisioning.Options{}) }

func newFixtureWith(t *testing.T, o provisioning.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: relaytest.NewClock(time.Now().UTC().Truncate(time.Second)), events: map[string]outbox.Event{}}
	f.answer = func(provisioning.Command) (provisioning.Report, error) { return provisioning.Report{}, nil }
	f.db = recordstest.Open(t)
	o.Now = f.clock.Now
	f.a = provisioning.New(provisioning.Deps{
		SIMs: f.db.SIMs, Subscribers: f.db.Subscribers, Jobs: f.db.Jobs, Operator: f, Events: f, Submit: f,
	}, o)
	f.declare(1, "8944000000000000001", sim.Pending)
	f.declare(1, "8944000000000000002", sim.Active)
	f.declare(1, "8944000000000000003", sim.Suspended)
	f.declare(1, "8944000000000000004", sim.Terminated)
	f.declare(2, "8944000000000000099", sim.Pending)
	for _, id := range []string{"anna", "ben"} {
		relaytest.NoError(t, f.db.Subscribers.Put(t.Context(), 1, sim.Subscriber{ID: id, Forename: id}))
	}
	return f
}

func (f *fixture) declare(acct relay.AccountID, iccid sim.ICCID, s sim.State) {
	f.t.Helper()
	relaytest.NoError(f.t, f.db.SIMs.Declare(f.t.Context(), acct, []sim.SIM{{ICCID: iccid, IMSI: "2" + string(iccid)[5:], State: s, Service4G: s == sim.Active}}, false))
}

func (f *fixture) Submit(ctx context.Context, j job.Job) error {
	if f.submitErr != nil {
		return f.submitErr
	}
	return f.db.Jobs.Create(ctx, j)
}

func (f *fixture) Ready(context.Context, string) error { return f.readyErr }

func (f *fixture) Command(_ context.Context, c provisioning.Command) (provisioning.Report, error) {
	f.commands = append(f.commands, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Action, c.ICCID, strings.Join(c.Services, " "))))
	return f.answer(c)
}

func (f *fixture) EnforceSIMs(_ context.Context, _ relay.AccountID, iccids []sim.ICCID) error {
	f.enforced = append(f.enforced, iccids...)
	return nil
}

func (f *fixture) EnforcePool(context.Context, relay.AccountID, string) error { return nil }

func (f *fixture) Notify(_ context.Context, _ relay.AccountID, e outbox.Event) error {
	if _, exists := f.events[e.ID]; !exists {
		f.events[e.ID] = e
	}
	return nil
}

func (f *fixture) Prepare(ctx context.Context, acct relay.AccountID, e outbox.Event) (func(), error) {
	return func() { f.sent = append(f.sent, e.ID) }, f.Notify(ctx, acct, e)
}

// runJob runs a job once, as delivery/queue/jobs does, and returns the saved job.
func (f *fixture) runJob(id string) job.Job {
	f.t.Helper()
	ctx, store := f.t.Context(), f.db.Jobs
	j, taken, err := store.Lease(ctx, job.Ref{Account: 1, ID: id}, f.clock.Now(), f.clock.Now())
	relaytest.NoError(f.t, err)
	if !taken {
		return j
	}
	relaytest.NoError(f.t, f.finish(j, f.outcome(j)))
	j, err = store.Get(ctx, 1, id)
	relaytest.NoError(f.t, err)
	return j
}

func (f *fixture) outcome(j job.Job) job.Outcome {
	result, err := f.a.Runners(f)[j.Kind](f.t.Context(), j)
	if wait, ok := errors.AsType[job.Pause](err); ok {
		return job.Outcome{RetryAt: f.clock.Now().Add(time.Duration(wait)), Waits: true}
	}
	if reason, ok := job.Reason(err); ok {
		return job.Outcome{Error: reason}
	}
	if err != nil {
		return job.Outcome{Error: err.Error(), RetryAt: f.clock.Now().Add(time.Second)}
	}
	b, err := json.Marshal(result)
	relaytest.NoError(f.t, err)
	return job.Outcome{Result: b}
}

func (f *fixture) finish(j job.Job, o job.Outcome) error {
	if o.State().Ended() {
		notify, err := f.a.Ending(f.t.Context(), j, o)
		if err != nil {
			return err
		}
		notify()
	}
	return f.db.Jobs.Finish(f.t.Context(), j, o, f.clock.Now())
}

func (f *fixture) sim(iccid sim.ICCID) sim.SIM {
	f.t.Helper()
	s, err := f.db.SIMs.Get(f.t.Context(), 1, iccid)
	relaytest.NoError(f.t, err)
	return s
}

// eventTypes returns the types of the events in a fixed order.
func (f *fixture) eventTypes() string {
	var types []string
	for _, kind := range []string{"sim.state_changed", "job.completed", "job.failed"} {
		for _, e := range f.events {
			if e.Type == kind {
				types = append(types, kind)
			}
		}
	}
	return strings.Join(types, " ")
}

// request calls the method for an action.
func (f *fixture) request(action provisioning.Action, iccid string) (string, error) {
	ctx := f.t.Context()
	switch action {
	case provisioning.Activate:
		return f.a.Activate(ctx, 1, iccid, provisioning.Activation{Subscriber: "anna", Services: []string{sim.Service5G}})
	case provisioning.AddService:
		return f.a.SetService(ctx, 1, iccid, action, sim.Service5G)
	case provisioning.RemoveService:
		return f.a.SetService(ctx, 1, iccid, action, sim.Service4G)
	}
	return f.a.Change(ctx, 1, iccid, action)
}

func TestActionsChangeASIM(t *testing.T) {
	for _, tc := range []struct {
		name      string
		action    provisioning.Action
		iccid     sim.ICCID
		requested sim.State // the requested state while the job is queued
		want      string    // state, subscriber and services after the job
		events    string    // the types of the events
	}{
		{"activate", provisioning.Activate, "8944000000000000001", sim.Active, "active anna false true", "sim.state_changed job.completed"},
		{"suspend", provisioning.Suspend, "8944000000000000002", sim.Suspended, "suspended  true false", "sim.state_changed job.completed"},
		{"unsuspend", provisioning.Unsuspend, "8944000000000000003", sim.Active, "active  false false", "sim.state_changed job.completed"},
		{"terminate an active SIM", provisioning.Terminate, "8944000000000000002", sim.Terminated, "terminated  true false", "sim.state_changed job.completed"},
		{"terminate a suspended SIM", provisioning.Terminate, "8944000000000000003", sim.Terminated, "terminated  false false", "sim.state_changed job.completed"},
		{"add a service", provisioning.AddService, "8944000000000000002", sim.Active, "active  true true", "job.completed"},
		{"remove a service", provisioning.RemoveService, "8944000000000000002", sim.Active, "active  false false", "job.completed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			oldSIM := f.sim(tc.iccid)
			id, err := f.request(tc.action, string(tc.iccid))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the SIM while the job is queued", stateOf(f.sim(tc.iccid)), simState{oldSIM.State, tc.requested, id})
			if _, err := f.request(tc.action, string(tc.iccid)); relay.KindOf(err) != relay.KindInvalid {
				t.Errorf("second request: error %v, want kind invalid", err)
			}
			j := f.runJob(id)
			s := f.sim(tc.iccid)
			got := fmt.Sprint(s.State, " ", s.Subscriber, " ", s.Service4G, " ", s.Service5G)
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{job.Completed, ""})
			relaytest.Equal(t, "state, subscriber and services of the SIM", got, tc.want)
			relaytest.Equal(t, "requested state and job of the SIM", []string{string(s.RequestedState), s.Job}, []string{string(s.State), ""})
			relaytest.Equal(t, "the events", f.eventTypes(), tc.events)
			relaytest.Equal(t, "the number of commands and sent callbacks", []int{len(f.commands), len(f.sent)}, []int{1, 1})
		})
	}
}

func TestIneligibleActionsAreRefused(t *testing.T) {
	f := newFixture(t)
	for _, tc := range []struct {
		name, iccid string
		action      provisioning.Action
		kind        relay.Kind
		text        string
	}{
		{"unknown SIM", "8944000000000000077", provisioning.Suspend, relay.KindNotFound, "SIM not found."},
		{"SIM of another account", "8944000000000000099", provisioning.Activate, relay.KindNotFound, "SIM not found."},
		{"invalid ICCID", "x", provisioning.Terminate, relay.KindNotFound, "SIM not found."},
		{"activation of an active SIM", "8944000000000000002", provisioning.Activate, relay.KindInvalid, "SIM is not eligible for activation: it is active."},
		{"suspension of a pending SIM", "8944000000000000001", provisioning.Suspend, relay.KindInvalid, "SIM is not eligible for suspension: it is pending."},
		{"unsuspension of an active SIM", "8944000000000000002", provisioning.Unsuspend, relay.KindInvalid, "SIM is not eligible for unsuspension: it is active."},
		{"termination of a terminated SIM", "8944000000000000004", provisioning.Terminate, relay.KindInvalid, "SIM is not eligible for termination: it is terminated."},
		{"service of a pending SIM", "8944000000000000001", provisioning.AddService, relay.KindInvalid, "SIM is not eligible for a change of its services: it is pending."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := f.request(tc.action, tc.iccid)
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), tc.kind)
			relaytest.Equal(t, "the error", fmt.Sprint(err), tc.text)
		})
	}
	f.readyErr = relay.Errorf(relay.KindUnavailable, "down")
	if _, err := f.request(provisioning.Activate, "8944000000000000001"); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("Activate while the operator is down: error %v, want kind unavailable", err)
	}
	_, total, err := f.a.ListJobs(t.Context(), 1, provisioning.JobFilter{}, relay.Page{Number: 1, PerPage: 10})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of jobs", total, 0)
	relaytest.Equal(t, "the SIM", stateOf(f.sim("8944000000000000001")), simState{sim.Pending, sim.Pending, ""})
}

func TestInvalidParametersOfActionsAreRefused(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	activate := func(a provisioning.Activation) error {
		_, err := f.a.Activate(ctx, 1, "8944000000000000001", a)
		return err
	}
	service := func(action provisioning.Action, name string) error {
		_, err := f.a.SetService(ctx, 1, "8944000000000000002", action, name)
		return err
	}
	reassign := func(r provisioning.Reassignment) error {
		_, err := f.a.Reassign(ctx, 1, r)
		return err
	}
	for name, tc := range map[string]struct {
		err         error
		field, text string
	}{
		"missing subscriber":                {activate(provisioning.Activation{}), "subscriber", "The subscriber field is required."},
		"unknown subscriber":                {activate(provisioning.Activation{Subscriber: "zoe"}), "subscriber", "The selected subscriber is invalid."},
		"new subscriber without a forename": {activate(provisioning.Activation{NewSubscriber: &sim.Subscriber{Surname: "x"}}), "subscriber.forename", "The forename field is required."},
		"missing service":                   {service(provisioning.AddService, ""), "service", "The service field is required."},
		"unknown service":                   {service(provisioning.AddService, "6g"), "service", "The selected service is invalid."},
		"service that the SIM has":          {service(provisioning.AddService, sim.Service4G), "service", "The selected service is invalid."},
		"service that the SIM lacks":        {service(provisioning.RemoveService, sim.Service5G), "service", "The selected service is invalid."},
		"missing target":                    {reassign(provisioning.Reassignment{Source: "anna"}), "target_subscriber", "The target subscriber field is required."},
		"neither SIMs nor source":           {reassign(provisioning.Reassignment{Target: "anna"}), "iccids", "The iccids field is required when source subscriber is not present."},
		"SIMs and source":                   {reassign(provisioning.Reassignment{Target: "anna", Source: "ben", Named: []string{"8944000000000000001"}}), "source_subscriber", "The source subscriber field must not be present when iccids is."},
		"equal source and target":           {reassign(provisioning.Reassignment{Target: "anna", Source: "anna"}), "source_subscriber", "The source subscriber and target subscriber must be different."},
		"unknown source":                    {reassign(provisioning.Reassignment{Target: "anna", Source: "zoe"}), "source_subscriber", "The selected source subscriber is invalid."},
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "the error of "+tc.field, relay.FieldsOf(tc.err)[tc.field], []string{tc.text})
		})
	}
	err := reassign(provisioning.Reassignment{Target: "anna", Named: []string{"8944000000000000001", "8944000000000000099"}})
	if relay.KindOf(err) != relay.KindInvalid || err.Error() != "Invalid ICCID: 8944000000000000099." {
		t.Errorf("Reassign with a SIM of another account: error %v, want one that names the SIM", err)
	}
}

func TestARequestSucceedsWhileTheQueueIsDown(t *testing.T) {
	f := newFixture(t)
	const active = "8944000000000000002"
	f.submitErr = relay.Errorf(relay.KindUnavailable, "redis is down")
	id, err := f.request(provisioning.Suspend, active)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state of the job", f.runJob(id).State, job.Completed)
	relaytest.Equal(t, "the state of the SIM", f.sim(active).State, sim.Suspended)
}

func TestALimitSuspendsActiveSIMsOnce(t *testing.T) {
	f := newFixture(t)
	const active = "8944000000000000002"
	suspend := func(iccid sim.ICCID) relay.Kind {
		err := f.a.Suspend(t.Context(), 1, iccid)
		if err != nil && relay.KindOf(err) == relay.KindUnexpected {
			t.Fatal(err)
		}
		return relay.KindOf(err)
	}
	countJobs := func() int {
		_, total, err := f.a.ListJobs(t.Context(), 1, provisioning.JobFilter{}, relay.Page{Number: 1, PerPage: 10})
		relaytest.NoError(t, err)
		return total
	}
	for _, iccid := range []sim.ICCID{"8944000000000000001", "8944000000000000003", "8944000000000000004", "8944000000000000099", "x"} {
		relaytest.Equal(t, "the kind of error for SIM "+string(iccid), suspend(iccid), relay.KindUnexpected)
		relaytest.Equal(t, "the number of jobs after SIM "+string(iccid), countJobs(), 0)
	}
	id, err := f.request(provisioning.AddService, active)
	relaytest.NoError(t, err)
	if kind := suspend(active); kind != relay.KindUnavailable {
		t.Errorf("Suspend during a change of services: kind %v, want unavailable", kind)
	}
	f.runJob(id)
	for range 2 { // the second call finds the job of the first one
		relaytest.Equal(t, "the kind of error", suspend(active), relay.KindUnexpected)
		relaytest.Equal(t, "the number of jobs", countJobs(), 2)
		relaytest.Equal(t, "the requested state", f.sim(active).RequestedState, sim.Suspended)
	}
}
