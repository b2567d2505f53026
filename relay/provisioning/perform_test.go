package provisioning_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

const pending = "8944000000000000001"

// simState is the part of a SIM that a job changes.
type simState struct {
	State, Requested sim.State
	Job              string
}

func stateOf(s sim.SIM) simState { return simState{s.State, s.Requested, s.Job} }

func TestTheReportOfTheOperatorEndsTheJob(t *testing.T) {
	for name, tc := range map[string]struct {
		report      provisioning.Report
		state       job.State
		reason, now string // of the failure, and the SIM's state and requested state then
		events      string
	}{
		"refused": {
			provisioning.Report{Refused: "barred"}, job.Failed, "barred", "pending pending", "job.failed"},
		"another state than asked for": {
			provisioning.Report{State: sim.Suspended}, job.Failed, "The operator reports the SIM as suspended.", "suspended suspended", "sim.state_changed job.failed"},
		"the state asked for": {
			provisioning.Report{State: sim.Active}, job.Completed, "", "active active", "sim.state_changed job.completed"},
		"refused, and gone": {
			provisioning.Report{Refused: "gone", State: sim.Terminated}, job.Failed, "gone", "terminated terminated", "sim.state_changed job.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newFixture(t)
			y.answer = func(provisioning.Command) (provisioning.Report, error) { return tc.report, nil }
			id, err := y.ask(provisioning.Activate, pending)
			relaytest.NoError(t, err)
			j, one := y.run(id), y.sim(pending)
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{tc.state, tc.reason})
			relaytest.Equal(t, "state and requested state of the SIM", fmt.Sprint(one.State, " ", one.Requested), tc.now)
			relaytest.Equal(t, "the job of the SIM", one.Job, "")
			relaytest.Equal(t, "the events", y.types(), tc.events)
			data := y.events["job-"+id].Data.(map[string]any)
			relaytest.Equal(t, "ICCID, action and status of the event", []any{data["iccid"], data["action"], data["status"]},
				[]any{pending, provisioning.Activate, tc.state})
		})
	}
}

func TestLimitsAreEnforcedAfterAnActivation(t *testing.T) {
	for do, want := range map[provisioning.Action]string{provisioning.Activate: "[" + pending + "]", provisioning.Unsuspend: "[8944000000000000003]", provisioning.Suspend: "[]"} {
		y := newFixture(t)
		id, err := y.ask(do, map[provisioning.Action]string{provisioning.Activate: pending, provisioning.Unsuspend: "8944000000000000003", provisioning.Suspend: "8944000000000000002"}[do])
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the state of the job after "+string(do), y.run(id).State, job.Completed)
		relaytest.Equal(t, "the SIMs whose limits were enforced after "+string(do), fmt.Sprint(y.held), want)
	}
}

func TestACommandIsRepeatedWithTheSameIDWhileTheOperatorIsDown(t *testing.T) {
	y := newFixture(t)
	var ids []string
	y.answer = func(c provisioning.Command) (provisioning.Report, error) {
		ids = append(ids, c.ID)
		switch len(ids) {
		case 1:
			return provisioning.Report{}, relay.Errorf(relay.KindUnavailable, "down")
		case 2:
			return provisioning.Report{}, &provisioning.Unavailable{After: time.Minute, Cause: errors.New("busy")}
		case 3:
			return provisioning.Report{Pending: true}, nil
		case 4:
			return provisioning.Report{Pending: true, After: 7 * time.Second}, nil
		}
		return provisioning.Report{}, nil
	}
	id, err := y.ask(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	for i, pause := range []time.Duration{time.Second, time.Minute, 30500 * time.Millisecond, 7 * time.Second} {
		j := y.run(id)
		if j.State != job.Processing || !j.Due.Equal(y.clock.Now().Add(pause)) || y.sim(pending).Job != id {
			t.Fatalf("run %d: %s until %s, now %s", i+1, j.State, j.Due, y.clock.Now())
		}
		y.clock.Advance(pause)
	}
	relaytest.Equal(t, "the state of the job", y.run(id).State, job.Completed)
	relaytest.Equal(t, "the state of the SIM", y.sim(pending).State, sim.Active)
	for _, one := range ids {
		if one != id {
			t.Errorf("commands %q of the job %s", ids, id)
		}
	}
}

func TestAnOperatorThatNeverReportsFailsTheJob(t *testing.T) {
	y := newFixture(t)
	y.answer = func(provisioning.Command) (provisioning.Report, error) {
		return provisioning.Report{Pending: true}, nil
	}
	id, err := y.ask(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	y.clock.Advance(23 * time.Hour)
	relaytest.Equal(t, "the state of the job after 23 hours", y.run(id).State, job.Processing)
	y.clock.Advance(time.Hour)
	j := y.run(id)
	relaytest.Equal(t, "state and error of the job after 24 hours", []any{j.State, j.Error}, []any{job.Failed, "The operator did not report in time."})
	relaytest.Equal(t, "the SIM after 24 hours", stateOf(y.sim(pending)), simState{sim.Pending, sim.Pending, ""})
}

func TestARepeatedRunChangesNothing(t *testing.T) {
	for _, refused := range []string{"", "barred"} {
		y := newFixture(t)
		y.answer = func(provisioning.Command) (provisioning.Report, error) {
			return provisioning.Report{Refused: refused}, nil
		}
		id, err := y.ask(provisioning.Activate, pending)
		relaytest.NoError(t, err)
		early, err := y.db.Jobs.Get(t.Context(), 1, id) // as another process has it that lost its lease
		relaytest.NoError(t, err)
		first := y.outcome(early) // killed before the end was recorded
		_, err = y.ask(provisioning.Activate, pending)
		if (err == nil) != (refused != "") {
			t.Fatalf("a second activation after the refusal %q: %v", refused, err)
		}
		y.answer = func(provisioning.Command) (provisioning.Report, error) {
			return provisioning.Report{Refused: "not the first word"}, nil
		}
		j, second := y.run(id), y.outcome(early)
		relaytest.Equal(t, "the states of the runs", []job.State{j.State, second.State()}, []job.State{first.State(), first.State()})
		relaytest.Equal(t, "the errors of the runs", []string{j.Error, second.Error}, []string{refused, refused})
		relaytest.Equal(t, "the number of commands", len(y.notice), 1)
	}
}

func TestAJobThatFailsByAnInternalErrorReleasesItsSIM(t *testing.T) {
	y := newFixture(t)
	id, err := y.ask(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	j, err := y.a.Job(t.Context(), 1, id)
	relaytest.NoError(t, err)
	for range 2 {
		relaytest.NoError(t, y.finish(j, job.Outcome{Error: "internal error"}))
	}
	relaytest.Equal(t, "the SIM", stateOf(y.sim(pending)), simState{sim.Pending, sim.Pending, ""})
	relaytest.Equal(t, "the events", y.types(), "job.failed")
}

func TestAJobFailsIfItsSIMWasRemovedOrReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		what func(y *fixture) error
		want string
	}{
		"it was removed": {func(y *fixture) error { return y.db.SIMs.Delete(y.t.Context(), 1, pending) }, "The SIM is no longer there."},
		"it was set anew": {func(y *fixture) error {
			return y.db.SIMs.Declare(y.t.Context(), 1, []sim.SIM{{ICCID: pending, State: sim.Suspended}}, true)
		}, "The SIM was set anew meanwhile."},
	} {
		t.Run(name, func(t *testing.T) {
			y := newFixture(t)
			id, err := y.ask(provisioning.Activate, pending)
			relaytest.NoError(t, err)
			relaytest.NoError(t, tc.what(y))
			j := y.run(id)
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{job.Failed, tc.want})
			relaytest.Equal(t, "the commands", y.notice, nil)
		})
	}
}

func TestASubscriberIsRegisteredWithTheActivation(t *testing.T) {
	y := newFixture(t)
	id, err := y.a.Activate(t.Context(), 1, pending, provisioning.Activation{New: &sim.Subscriber{Forename: " Zoe ", Surname: "Z"}})
	relaytest.NoError(t, err)
	all := sim.Query{Page: relay.Page{Number: 1, PerPage: 10}}
	_, total, err := y.db.Subscribers.List(t.Context(), 1, all)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of subscribers before the job ran", total, 2)
	y.run(id)
	who, err := y.db.Subscribers.Get(t.Context(), 1, y.sim(pending).Subscriber)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the subscriber's names", []string{who.Forename, who.Surname}, []string{"Zoe", "Z"})
}

func TestReassign(t *testing.T) {
	for name, tc := range map[string]struct {
		r    provisioning.Reassignment
		want string // subscribers of the first three SIMs
	}{
		"those named":                  {provisioning.Reassignment{Target: "ben", Named: []string{pending, "8944000000000000002", pending}}, "ben ben anna"},
		"all of a subscriber's":        {provisioning.Reassignment{Target: "ben", Source: "anna"}, "ben ben ben"},
		"of a subscriber without SIMs": {provisioning.Reassignment{Target: "anna", Source: "ben"}, "anna anna anna"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newFixture(t)
			for i := range 3 {
				_, err := y.db.SIMs.Change(t.Context(), 1, sim.ICCID(fmt.Sprint("894400000000000000", i+1)), func(one *sim.SIM) error {
					one.Subscriber = "anna"
					return nil
				})
				relaytest.NoError(t, err)
			}
			id, err := y.a.Reassign(t.Context(), 1, tc.r)
			relaytest.NoError(t, err)
			j := y.run(id)
			got := y.sim(pending).Subscriber + " " + y.sim("8944000000000000002").Subscriber + " " + y.sim("8944000000000000003").Subscriber
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{job.Completed, ""})
			relaytest.Equal(t, "the subscribers", got, tc.want)
			relaytest.Equal(t, "the events", y.types(), "job.completed")
		})
	}
}

func TestJobsOfAnAccount(t *testing.T) {
	y := newFixture(t)
	first, err := y.ask(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	second, err := y.ask(provisioning.Suspend, "8944000000000000002")
	relaytest.NoError(t, err)
	y.run(first)
	found, total, err := y.a.ListJobs(t.Context(), 1, provisioning.JobFilter{}, relay.Page{Number: 1, PerPage: 10})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the total of all jobs", total, 2)
	relaytest.Equal(t, "the jobs", jobIDs(found), []string{first, second})
	found, total, err = y.a.ListJobs(t.Context(), 1, provisioning.JobFilter{State: job.Queued, Action: provisioning.Suspend}, relay.Page{Number: 1, PerPage: 10})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the total of queued suspensions", total, 1)
	relaytest.Equal(t, "the queued suspensions", jobIDs(found), []string{second})
	relaytest.Equal(t, "the action of the suspension", provisioning.ActionOf(found[0].Kind), provisioning.Suspend)
	relaytest.NoError(t, y.db.Jobs.Create(t.Context(), job.Job{ID: "token", Account: 1, Kind: "token.claim", CreatedAt: y.clock.Now()}))
	for what, ref := range map[string]job.Ref{"a job of another kind": {Account: 1, ID: "token"}, "another account's job": {Account: 2, ID: first}} {
		_, err := y.a.Job(t.Context(), ref.Account, ref.ID)
		relaytest.Equal(t, "the kind of error for "+what, relay.KindOf(err), relay.KindNotFound)
		relaytest.Equal(t, "the error for "+what, err.Error(), "Invalid job.")
	}
}

func jobIDs(jobs []job.Job) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func TestALongReassignmentContinuesInItsNextRun(t *testing.T) {
	y := newFixtureWith(t, provisioning.Options{Slice: -time.Nanosecond}) // over with the first look at the clock
	const many = 1100
	all := make([]sim.SIM, many)
	for i := range all {
		all[i] = sim.SIM{ICCID: sim.ICCID(fmt.Sprintf("8945%015d", i)), State: sim.Active, Subscriber: "anna"}
	}
	relaytest.NoError(t, y.db.SIMs.Declare(t.Context(), 1, all, false))
	id, err := y.a.Reassign(t.Context(), 1, provisioning.Reassignment{Target: "ben", Source: "anna"})
	relaytest.NoError(t, err)
	runs := 0
	for j := y.run(id); !j.State.Ended(); j = y.run(id) {
		y.clock.Advance(time.Second)
		if runs++; j.Tries != 0 || runs > 10 {
			t.Fatalf("run %d: %d failed tries, %s", runs, j.Tries, j.State)
		}
	}
	for subscriber, want := range map[string]int{"anna": 0, "ben": many} {
		_, total, err := y.db.SIMs.List(t.Context(), 1, sim.Scope{Subscriber: subscriber}, sim.Query{Page: relay.Page{Number: 1, PerPage: 1}})
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the number of SIMs of "+subscriber, total, want)
	}
	if runs < 2 {
		t.Errorf("%d runs, want several", runs)
	}
}

// Two reassignments that move the same SIMs back and forth would never end.
func TestOldReassignmentsTakeTurns(t *testing.T) {
	y := newFixtureWith(t, provisioning.Options{Slice: -time.Nanosecond}) // over with the first look at the clock
	all := make([]sim.SIM, 1100)
	for i := range all {
		all[i] = sim.SIM{ICCID: sim.ICCID(fmt.Sprintf("8945%015d", i)), State: sim.Active, Subscriber: "anna"}
	}
	relaytest.NoError(t, y.db.SIMs.Declare(t.Context(), 1, all, false))
	one, err := y.a.Reassign(t.Context(), 1, provisioning.Reassignment{Target: "ben", Source: "anna"})
	relaytest.NoError(t, err)
	two, err := y.a.Reassign(t.Context(), 1, provisioning.Reassignment{Target: "anna", Source: "ben"})
	relaytest.NoError(t, err)
	for range 10 {
		if y.run(one).State != job.Processing || y.run(two).State != job.Processing {
			t.Fatal("a reassignment ended before the other interfered")
		}
		y.clock.Advance(time.Second)
	}
	y.clock.Advance(time.Minute)
	for range 10 {
		y.run(two)
		y.run(one)
		y.clock.Advance(time.Second)
	}
	relaytest.Equal(t, "the states of both jobs", []job.State{y.run(one).State, y.run(two).State}, []job.State{job.Completed, job.Completed})
}

func TestReassignReturnsTheErrorOfTheFirstSIM(t *testing.T) {
	y := newFixture(t)
	for _, iccid := range []string{"8944000000000000001", "8944000000000000002"} {
		relaytest.NoError(t, y.db.DB.Run(t.Context(), "test", fmt.Sprintf(`
CREATE TRIGGER fail_%[1]s BEFORE UPDATE ON sim WHEN OLD.iccid = '%[1]s'
BEGIN SELECT RAISE(ABORT, 'change of %[1]s'); END`, iccid)))
	}
	input, err := json.Marshal(provisioning.Reassignment{Target: "anna", ICCIDs: []sim.ICCID{"8944000000000000001", "8944000000000000002"}})
	relaytest.NoError(t, err)
	_, err = y.a.Runners(y)[provisioning.BulkReassign.Kind()](t.Context(), job.Job{ID: "j", Account: 1, Input: input, CreatedAt: y.clock.Now()})
	if !strings.Contains(fmt.Sprint(err), "change of 8944000000000000001") {
		t.Errorf("the error is %v", err)
	}
}
