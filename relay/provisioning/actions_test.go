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

// fixture has the actions over real records, and an operator that the test controls. The
// test runs the jobs.
type fixture struct {
	t  *testing.T
	db *recordstest.Records
	a  *provisioning.Actions

	clock  *relaytest.Clock
	notice []string // commands, as "<job> <action> <iccid> …"
	events map[string]outbox.Event
	sent   []string
	held   []sim.ICCID // whose limits were enforced
	ready  error
	busy   error // of Submit, when set
	answer func(c provisioning.Command) (provisioning.Report, error)
}

func newFixture(t *testing.T) *fixture { return newFixtureWith(t, provisioning.Options{}) }

func newFixtureWith(t *testing.T, o provisioning.Options) *fixture {
	t.Helper()
	y := &fixture{t: t, clock: relaytest.NewClock(time.Now().UTC().Truncate(time.Second)), events: map[string]outbox.Event{}}
	y.answer = func(provisioning.Command) (provisioning.Report, error) { return provisioning.Report{}, nil }
	y.db = recordstest.Open(t)
	o.Now = y.clock.Now
	y.a = provisioning.New(provisioning.Deps{
		SIMs: y.db.SIMs, Subscribers: y.db.Subscribers, Jobs: y.db.Jobs, Operator: y, Events: y, Submit: y,
	}, o)
	y.declare(1, "8944000000000000001", sim.Pending)
	y.declare(1, "8944000000000000002", sim.Active)
	y.declare(1, "8944000000000000003", sim.Suspended)
	y.declare(1, "8944000000000000004", sim.Terminated)
	y.declare(2, "8944000000000000099", sim.Pending)
	for _, id := range []string{"anna", "ben"} {
		relaytest.NoError(t, y.db.Subscribers.Put(t.Context(), 1, sim.Subscriber{ID: id, Forename: id}))
	}
	return y
}

func (y *fixture) declare(acct relay.AccountID, iccid sim.ICCID, s sim.State) {
	y.t.Helper()
	relaytest.NoError(y.t, y.db.SIMs.Declare(y.t.Context(), acct, []sim.SIM{{ICCID: iccid, IMSI: "2" + string(iccid)[5:], State: s, Service4G: s == sim.Active}}, false))
}

func (y *fixture) Submit(ctx context.Context, j job.Job) error {
	if y.busy != nil {
		return y.busy
	}
	return y.db.Jobs.Create(ctx, j)
}

func (y *fixture) Ready(context.Context, string) error { return y.ready }

func (y *fixture) Command(_ context.Context, c provisioning.Command) (provisioning.Report, error) {
	y.notice = append(y.notice, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Action, c.ICCID, strings.Join(c.Services, " "))))
	return y.answer(c)
}

func (y *fixture) EnforceSIMs(_ context.Context, _ relay.AccountID, iccids []sim.ICCID) error {
	y.held = append(y.held, iccids...)
	return nil
}

func (y *fixture) EnforcePool(context.Context, relay.AccountID, string) error { return nil }

func (y *fixture) Notify(_ context.Context, _ relay.AccountID, e outbox.Event) error {
	if _, known := y.events[e.ID]; !known {
		y.events[e.ID] = e
	}
	return nil
}

func (y *fixture) Prepare(ctx context.Context, acct relay.AccountID, e outbox.Event) (func(), error) {
	return func() { y.sent = append(y.sent, e.ID) }, y.Notify(ctx, acct, e)
}

// run runs a job once, as delivery/queue/jobs does, and returns the saved job.
func (y *fixture) run(id string) job.Job {
	y.t.Helper()
	ctx, store := y.t.Context(), y.db.Jobs
	j, taken, err := store.Lease(ctx, job.Ref{Account: 1, ID: id}, y.clock.Now(), y.clock.Now())
	relaytest.NoError(y.t, err)
	if !taken {
		return j
	}
	relaytest.NoError(y.t, y.finish(j, y.outcome(j)))
	j, err = store.Get(ctx, 1, id)
	relaytest.NoError(y.t, err)
	return j
}

func (y *fixture) outcome(j job.Job) job.Outcome {
	result, err := y.a.Runners(y)[j.Kind](y.t.Context(), j)
	if wait, ok := errors.AsType[job.Pause](err); ok {
		return job.Outcome{RetryAt: y.clock.Now().Add(time.Duration(wait)), Waits: true}
	}
	if reason, ok := job.Reason(err); ok {
		return job.Outcome{Error: reason}
	}
	if err != nil {
		return job.Outcome{Error: err.Error(), RetryAt: y.clock.Now().Add(time.Second)}
	}
	b, err := json.Marshal(result)
	relaytest.NoError(y.t, err)
	return job.Outcome{Result: b}
}

func (y *fixture) finish(j job.Job, o job.Outcome) error {
	if o.State().Ended() {
		after, err := y.a.Ending(y.t.Context(), j, o)
		if err != nil {
			return err
		}
		after()
	}
	return y.db.Jobs.Finish(y.t.Context(), j, o, y.clock.Now())
}

func (y *fixture) sim(iccid sim.ICCID) sim.SIM {
	y.t.Helper()
	one, err := y.db.SIMs.Get(y.t.Context(), 1, iccid)
	relaytest.NoError(y.t, err)
	return one
}

func (y *fixture) types() string {
	var out []string
	for _, kind := range []string{"sim.state_changed", "job.completed", "job.failed"} {
		for _, e := range y.events {
			if e.Type == kind {
				out = append(out, kind)
			}
		}
	}
	return strings.Join(out, " ")
}

// ask calls a use case by its name.
func (y *fixture) ask(do provisioning.Action, iccid string) (string, error) {
	ctx := y.t.Context()
	switch do {
	case provisioning.Activate:
		return y.a.Activate(ctx, 1, iccid, provisioning.Activation{Subscriber: "anna", Services: []string{sim.Service5G}})
	case provisioning.AddService:
		return y.a.SetService(ctx, 1, iccid, do, sim.Service5G)
	case provisioning.RemoveService:
		return y.a.SetService(ctx, 1, iccid, do, sim.Service4G)
	}
	return y.a.Change(ctx, 1, iccid, do)
}

func TestActionsChangeASIM(t *testing.T) {
	for _, tc := range []struct {
		name  string
		do    provisioning.Action
		iccid sim.ICCID
		asked sim.State // the requested state while the job runs
		want  string    // state, subscriber and services after it
		sent  string    // the events
	}{
		{"activate", provisioning.Activate, "8944000000000000001", sim.Active, "active anna false true", "sim.state_changed job.completed"},
		{"suspend", provisioning.Suspend, "8944000000000000002", sim.Suspended, "suspended  true false", "sim.state_changed job.completed"},
		{"unsuspend", provisioning.Unsuspend, "8944000000000000003", sim.Active, "active  false false", "sim.state_changed job.completed"},
		{"terminate an active one", provisioning.Terminate, "8944000000000000002", sim.Terminated, "terminated  true false", "sim.state_changed job.completed"},
		{"terminate a suspended one", provisioning.Terminate, "8944000000000000003", sim.Terminated, "terminated  false false", "sim.state_changed job.completed"},
		{"add a service", provisioning.AddService, "8944000000000000002", sim.Active, "active  true true", "job.completed"},
		{"remove a service", provisioning.RemoveService, "8944000000000000002", sim.Active, "active  false false", "job.completed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			y := newFixture(t)
			before := y.sim(tc.iccid)
			id, err := y.ask(tc.do, string(tc.iccid))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the SIM while the job is queued", stateOf(y.sim(tc.iccid)), simState{before.State, tc.asked, id})
			if _, err := y.ask(tc.do, string(tc.iccid)); relay.KindOf(err) != relay.KindInvalid {
				t.Errorf("a second request: %v", err)
			}
			j := y.run(id)
			one := y.sim(tc.iccid)
			got := fmt.Sprint(one.State, " ", one.Subscriber, " ", one.Service4G, " ", one.Service5G)
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{job.Completed, ""})
			relaytest.Equal(t, "state, subscriber and services of the SIM", got, tc.want)
			relaytest.Equal(t, "requested state and job of the SIM", []string{string(one.Requested), one.Job}, []string{string(one.State), ""})
			relaytest.Equal(t, "the events", y.types(), tc.sent)
			relaytest.Equal(t, "the number of commands and sent callbacks", []int{len(y.notice), len(y.sent)}, []int{1, 1})
		})
	}
}

func TestActionsRefuse(t *testing.T) {
	y := newFixture(t)
	for _, tc := range []struct {
		name, iccid string
		do          provisioning.Action
		kind        relay.Kind
		text        string
	}{
		{"a SIM that is not there", "8944000000000000077", provisioning.Suspend, relay.KindNotFound, "SIM not found."},
		{"another account's SIM", "8944000000000000099", provisioning.Activate, relay.KindNotFound, "SIM not found."},
		{"an invalid ICCID", "x", provisioning.Terminate, relay.KindNotFound, "SIM not found."},
		{"an active SIM's activation", "8944000000000000002", provisioning.Activate, relay.KindInvalid, "SIM is not eligible for activation: it is active."},
		{"a pending SIM's suspension", "8944000000000000001", provisioning.Suspend, relay.KindInvalid, "SIM is not eligible for suspension: it is pending."},
		{"an active SIM's unsuspension", "8944000000000000002", provisioning.Unsuspend, relay.KindInvalid, "SIM is not eligible for unsuspension: it is active."},
		{"a terminated SIM's termination", "8944000000000000004", provisioning.Terminate, relay.KindInvalid, "SIM is not eligible for termination: it is terminated."},
		{"a service for a pending SIM", "8944000000000000001", provisioning.AddService, relay.KindInvalid, "SIM is not eligible for a change of its services: it is pending."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := y.ask(tc.do, tc.iccid)
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), tc.kind)
			relaytest.Equal(t, "the error", fmt.Sprint(err), tc.text)
		})
	}
	y.ready = relay.Errorf(relay.KindUnavailable, "down")
	if _, err := y.ask(provisioning.Activate, "8944000000000000001"); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("while the operator is down: %v", err)
	}
	_, total, err := y.a.ListJobs(t.Context(), 1, provisioning.JobFilter{}, relay.Page{Number: 1, PerPage: 10})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of jobs", total, 0)
	relaytest.Equal(t, "the SIM", stateOf(y.sim("8944000000000000001")), simState{sim.Pending, sim.Pending, ""})
}

func TestParametersOfActions(t *testing.T) {
	y := newFixture(t)
	ctx := t.Context()
	activate := func(a provisioning.Activation) error {
		_, err := y.a.Activate(ctx, 1, "8944000000000000001", a)
		return err
	}
	service := func(do provisioning.Action, name string) error {
		_, err := y.a.SetService(ctx, 1, "8944000000000000002", do, name)
		return err
	}
	reassign := func(r provisioning.Reassignment) error {
		_, err := y.a.Reassign(ctx, 1, r)
		return err
	}
	for name, tc := range map[string]struct {
		err         error
		field, text string
	}{
		"no subscriber":                 {activate(provisioning.Activation{}), "subscriber", "The subscriber field is required."},
		"a subscriber that is not here": {activate(provisioning.Activation{Subscriber: "zoe"}), "subscriber", "The selected subscriber is invalid."},
		"a new one without a forename":  {activate(provisioning.Activation{New: &sim.Subscriber{Surname: "x"}}), "subscriber.forename", "The forename field is required."},
		"no service":                    {service(provisioning.AddService, ""), "service", "The service field is required."},
		"a service that there is not":   {service(provisioning.AddService, "6g"), "service", "The selected service is invalid."},
		"a service that it has":         {service(provisioning.AddService, sim.Service4G), "service", "The selected service is invalid."},
		"a service that it has not":     {service(provisioning.RemoveService, sim.Service5G), "service", "The selected service is invalid."},
		"no target":                     {reassign(provisioning.Reassignment{Source: "anna"}), "target_subscriber", "The target subscriber field is required."},
		"neither SIMs nor source":       {reassign(provisioning.Reassignment{Target: "anna"}), "iccids", "The iccids field is required when source subscriber is not present."},
		"both":                          {reassign(provisioning.Reassignment{Target: "anna", Source: "ben", Named: []string{"8944000000000000001"}}), "source_subscriber", "The source subscriber field must not be present when iccids is."},
		"from one to the same":          {reassign(provisioning.Reassignment{Target: "anna", Source: "anna"}), "source_subscriber", "The source subscriber and target subscriber must be different."},
		"a source that is not here":     {reassign(provisioning.Reassignment{Target: "anna", Source: "zoe"}), "source_subscriber", "The selected source subscriber is invalid."},
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "the problems of "+tc.field, relay.FieldsOf(tc.err)[tc.field], []string{tc.text})
		})
	}
	err := reassign(provisioning.Reassignment{Target: "anna", Named: []string{"8944000000000000001", "8944000000000000099"}})
	if relay.KindOf(err) != relay.KindInvalid || err.Error() != "Invalid ICCID: 8944000000000000099." {
		t.Errorf("another account's SIM: %v", err)
	}
}

func TestASavedJobIsAnsweredThoughTheQueueIsDown(t *testing.T) {
	y := newFixture(t)
	const active = "8944000000000000002"
	y.busy = relay.Errorf(relay.KindUnavailable, "redis went away")
	id, err := y.ask(provisioning.Suspend, active)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state of the job", y.run(id).State, job.Completed)
	relaytest.Equal(t, "the state of the SIM", y.sim(active).State, sim.Suspended)
}

func TestALimitSuspendsActiveSIMsOnce(t *testing.T) {
	y := newFixture(t)
	const active = "8944000000000000002"
	suspend := func(iccid sim.ICCID) relay.Kind {
		err := y.a.Suspend(t.Context(), 1, iccid)
		if err != nil && relay.KindOf(err) == relay.KindUnexpected {
			t.Fatal(err)
		}
		return relay.KindOf(err)
	}
	jobs := func() int {
		_, total, err := y.a.ListJobs(t.Context(), 1, provisioning.JobFilter{}, relay.Page{Number: 1, PerPage: 10})
		relaytest.NoError(t, err)
		return total
	}
	for _, iccid := range []sim.ICCID{"8944000000000000001", "8944000000000000003", "8944000000000000004", "8944000000000000099", "x"} {
		relaytest.Equal(t, "the kind of error for SIM "+string(iccid), suspend(iccid), relay.KindUnexpected)
		relaytest.Equal(t, "the number of jobs after SIM "+string(iccid), jobs(), 0)
	}
	id, err := y.ask(provisioning.AddService, active)
	relaytest.NoError(t, err)
	if kind := suspend(active); kind != relay.KindUnavailable {
		t.Errorf("while its services are changed: %v", kind)
	}
	y.run(id)
	for range 2 { // the second finds the job of the first
		relaytest.Equal(t, "the kind of error", suspend(active), relay.KindUnexpected)
		relaytest.Equal(t, "the number of jobs", jobs(), 2)
		relaytest.Equal(t, "the requested state", y.sim(active).Requested, sim.Suspended)
	}
}
