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

func stateOf(s sim.SIM) simState { return simState{s.State, s.RequestedState, s.Job} }

func TestAReportOfTheOperatorEndsTheJob(t *testing.T) {
	for name, tc := range map[string]struct {
		report provisioning.Report
		state  job.State
		reason string // the error of the job
		states string // state and requested state of the SIM after the job
		events string
	}{
		"refused": {
			provisioning.Report{Refused: "barred"}, job.Failed, "barred", "pending pending", "job.failed"},
		"unrequested state": {
			provisioning.Report{State: sim.Suspended}, job.Failed, "The operator reports the SIM as suspended.", "suspended suspended", "sim.state_changed job.failed"},
		"requested state": {
			provisioning.Report{State: sim.Active}, job.Completed, "", "active active", "sim.state_changed job.completed"},
		"refused with a state": {
			provisioning.Report{Refused: "gone", State: sim.Terminated}, job.Failed, "gone", "terminated terminated", "sim.state_changed job.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.answer = func(provisioning.Command) (provisioning.Report, error) { return tc.report, nil }
			id, err := f.request(provisioning.Activate, pending)
			relaytest.NoError(t, err)
			j, s := f.runJob(id), f.sim(pending)
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{tc.state, tc.reason})
			relaytest.Equal(t, "state and requested state of the SIM", fmt.Sprint(s.State, " ", s.RequestedState), tc.states)
			relaytest.Equal(t, "the job of the SIM", s.Job, "")
			relaytest.Equal(t, "the events", f.eventTypes(), tc.events)
			data := f.events["job-"+id].Data.(map[string]any)
			relaytest.Equal(t, "ICCID, action and status of the event", []any{data["iccid"], data["action"], data["status"]},
				[]any{pending, provisioning.Activate, tc.state})
		})
	}
}

func TestLimitsAreEnforcedAfterAnActivation(t *testing.T) {
	for action, want := range map[provisioning.Action]string{provisioning.Activate: "[" + pending + "]", provisioning.Unsuspend: "[8944000000000000003]", provisioning.Suspend: "[]"} {
		f := newFixture(t)
		id, err := f.request(action, map[provisioning.Action]string{provisioning.Activate: pending, provisioning.Unsuspend: "8944000000000000003", provisioning.Suspend: "8944000000000000002"}[action])
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the state of the job after "+string(action), f.runJob(id).State, job.Completed)
		relaytest.Equal(t, "the SIMs with enforced limits after "+string(action), fmt.Sprint(f.enforced), want)
	}
}

func TestACommandIsRepeatedWithTheSameIDWhileTheOperatorIsDown(t *testing.T) {
	f := newFixture(t)
	var ids []string
	f.answer = func(c provisioning.Command) (provisioning.Report, error) {
		ids = append(ids, c.ID)
		switch len(ids) {
		case 1:
			return provisioning.Report{}, relay.Errorf(relay.KindUnavailable, "down")
		case 2:
			return provisioning.Report{}, &provisioning.UnavailableError{RetryAfter: time.Minute, Cause: errors.New("busy")}
		case 3:
			return provisioning.Report{Pending: true}, nil
		case 4:
			return provisioning.Report{Pending: true, RetryAfter: 7 * time.Second}, nil
		}
		return provisioning.Report{}, nil
	}
	id, err := f.request(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	for i, pause := range []time.Duration{time.Second, time.Minute, 30500 * time.Millisecond, 7 * time.Second} {
		j := f.runJob(id)
		if j.State != job.Processing || !j.Due.Equal(f.clock.Now().Add(pause)) || f.sim(pending).Job != id {
			t.Fatalf("run %d: job %s is due at %s, want processing and due at %s", i+1, j.State, j.Due, f.clock.Now().Add(pause))
		}
		f.clock.Advance(pause)
	}
	relaytest.Equal(t, "the state of the job", f.runJob(id).State, job.Completed)
	relaytest.Equal(t, "the state of the SIM", f.sim(pending).State, sim.Active)
	for _, commandID := range ids {
		if commandID != id {
			t.Errorf("command ids = %q, want the id of the job %s", ids, id)
		}
	}
}

func TestAnOperatorThatNeverReportsFailsTheJob(t *testing.T) {
	f := newFixture(t)
	f.answer = func(provisioning.Command) (provisioning.Report, error) {
		return provisioning.Report{Pending: true}, nil
	}
	id, err := f.request(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	f.clock.Advance(23 * time.Hour)
	relaytest.Equal(t, "the state of the job after 23 hours", f.runJob(id).State, job.Processing)
	f.clock.Advance(time.Hour)
	j := f.runJob(id)
	relaytest.Equal(t, "state and error of the job after 24 hours", []any{j.State, j.Error}, []any{job.Failed, "The operator did not report in time."})
	relaytest.Equal(t, "the SIM after 24 hours", stateOf(f.sim(pending)), simState{sim.Pending, sim.Pending, ""})
}

func TestARepeatedRunChangesNothing(t *testing.T) {
	for _, refused := range []string{"", "barred"} {
		f := newFixture(t)
		f.answer = func(provisioning.Command) (provisioning.Report, error) {
			return provisioning.Report{Refused: refused}, nil
		}
		id, err := f.request(provisioning.Activate, pending)
		relaytest.NoError(t, err)
		oldJob, err := f.db.Jobs.Get(t.Context(), 1, id) // the job as loaded by a process that has lost its lease
		relaytest.NoError(t, err)
		firstOutcome := f.outcome(oldJob) // the outcome is not recorded
		_, err = f.request(provisioning.Activate, pending)
		if (err == nil) != (refused != "") {
			t.Fatalf("second activation after the refusal %q: error %v", refused, err)
		}
		f.answer = func(provisioning.Command) (provisioning.Report, error) {
			return provisioning.Report{Refused: "another reason"}, nil
		}
		j, secondOutcome := f.runJob(id), f.outcome(oldJob)
		relaytest.Equal(t, "the states of the runs", []job.State{j.State, secondOutcome.State()}, []job.State{firstOutcome.State(), firstOutcome.State()})
		relaytest.Equal(t, "the errors of the runs", []string{j.Error, secondOutcome.Error}, []string{refused, refused})
		relaytest.Equal(t, "the number of commands", len(f.commands), 1)
	}
}

func TestAJobWithAnInternalErrorReleasesItsSIM(t *testing.T) {
	f := newFixture(t)
	id, err := f.request(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	j, err := f.a.Job(t.Context(), 1, id)
	relaytest.NoError(t, err)
	for range 2 {
		relaytest.NoError(t, f.finish(j, job.Outcome{Error: "internal error"}))
	}
	relaytest.Equal(t, "the SIM", stateOf(f.sim(pending)), simState{sim.Pending, sim.Pending, ""})
	relaytest.Equal(t, "the events", f.eventTypes(), "job.failed")
}

func TestAJobFailsIfItsSIMWasRemovedOrReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(f *fixture) error
		want   string
	}{
		"removed": {func(f *fixture) error { return f.db.SIMs.Delete(f.t.Context(), 1, pending) }, "The SIM was deleted."},
		"replaced": {func(f *fixture) error {
			return f.db.SIMs.Declare(f.t.Context(), 1, []sim.SIM{{ICCID: pending, State: sim.Suspended}}, true)
		}, "An inventory reset the SIM in the meantime."},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			id, err := f.request(provisioning.Activate, pending)
			relaytest.NoError(t, err)
			relaytest.NoError(t, tc.change(f))
			j := f.runJob(id)
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{job.Failed, tc.want})
			relaytest.Equal(t, "the commands", f.commands, nil)
		})
	}
}

func TestASubscriberIsRegisteredWithTheActivation(t *testing.T) {
	f := newFixture(t)
	id, err := f.a.Activate(t.Context(), 1, pending, provisioning.Activation{NewSubscriber: &sim.Subscriber{Forename: " Zoe ", Surname: "Z"}})
	relaytest.NoError(t, err)
	query := sim.Query{Page: relay.Page{Number: 1, PerPage: 10}}
	_, total, err := f.db.Subscribers.List(t.Context(), 1, query)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of subscribers before the job ran", total, 2)
	f.runJob(id)
	subscriber, err := f.db.Subscribers.Get(t.Context(), 1, f.sim(pending).Subscriber)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the names of the subscriber", []string{subscriber.Forename, subscriber.Surname}, []string{"Zoe", "Z"})
}

func TestReassign(t *testing.T) {
	for name, tc := range map[string]struct {
		reassignment provisioning.Reassignment
		want         string // subscribers of the first three SIMs
	}{
		"named SIMs":               {provisioning.Reassignment{Target: "ben", Named: []string{pending, "8944000000000000002", pending}}, "ben ben anna"},
		"all SIMs of a subscriber": {provisioning.Reassignment{Target: "ben", Source: "anna"}, "ben ben ben"},
		"no SIMs":                  {provisioning.Reassignment{Target: "anna", Source: "ben"}, "anna anna anna"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for i := range 3 {
				_, err := f.db.SIMs.Change(t.Context(), 1, sim.ICCID(fmt.Sprint("894400000000000000", i+1)), func(s *sim.SIM) error {
					s.Subscriber = "anna"
					return nil
				})
				relaytest.NoError(t, err)
			}
			id, err := f.a.Reassign(t.Context(), 1, tc.reassignment)
			relaytest.NoError(t, err)
			j := f.runJob(id)
			got := f.sim(pending).Subscriber + " " + f.sim("8944000000000000002").Subscriber + " " + f.sim("8944000000000000003").Subscriber
			relaytest.Equal(t, "state and error of the job", []any{j.State, j.Error}, []any{job.Completed, ""})
			relaytest.Equal(t, "the subscribers", got, tc.want)
			relaytest.Equal(t, "the events", f.eventTypes(), "job.completed")
		})
	}
}

func TestJobsOfAnAccount(t *testing.T) {
	f := newFixture(t)
	firstID, err := f.request(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	secondID, err := f.request(provisioning.Suspend, "8944000000000000002")
	relaytest.NoError(t, err)
	f.runJob(firstID)
	jobs, total, err := f.a.ListJobs(t.Context(), 1, provisioning.JobFilter{}, relay.Page{Number: 1, PerPage: 10})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the total of all jobs", total, 2)
	relaytest.Equal(t, "the jobs", jobIDs(jobs), []string{firstID, secondID})
	jobs, total, err = f.a.ListJobs(t.Context(), 1, provisioning.JobFilter{State: job.Queued, Action: provisioning.Suspend}, relay.Page{Number: 1, PerPage: 10})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the total of queued suspensions", total, 1)
	relaytest.Equal(t, "the queued suspensions", jobIDs(jobs), []string{secondID})
	relaytest.Equal(t, "the action of the suspension", provisioning.ActionOf(jobs[0].Kind), provisioning.Suspend)
	relaytest.NoError(t, f.db.Jobs.Create(t.Context(), job.Job{ID: "token", Account: 1, Kind: "token.claim", CreatedAt: f.clock.Now()}))
	for name, ref := range map[string]job.Ref{"a job of another kind": {Account: 1, ID: "token"}, "a job of another account": {Account: 2, ID: firstID}} {
		_, err := f.a.Job(t.Context(), ref.Account, ref.ID)
		relaytest.Equal(t, "the kind of error for "+name, relay.KindOf(err), relay.KindNotFound)
		relaytest.Equal(t, "the error for "+name, err.Error(), "Invalid job.")
	}
}

func jobIDs(jobs []job.Job) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func TestALongReassignmentContinuesInItsNextRun(t *testing.T) {
	f := newFixtureWith(t, provisioning.Options{RunTime: -time.Nanosecond}) // each run ends at its first check of the clock
	const simCount = 1100
	sims := make([]sim.SIM, simCount)
	for i := range sims {
		sims[i] = sim.SIM{ICCID: sim.ICCID(fmt.Sprintf("8945%015d", i)), State: sim.Active, Subscriber: "anna"}
	}
	relaytest.NoError(t, f.db.SIMs.Declare(t.Context(), 1, sims, false))
	id, err := f.a.Reassign(t.Context(), 1, provisioning.Reassignment{Target: "ben", Source: "anna"})
	relaytest.NoError(t, err)
	runs := 0
	for j := f.runJob(id); !j.State.Ended(); j = f.runJob(id) {
		f.clock.Advance(time.Second)
		if runs++; j.Tries != 0 || runs > 10 {
			t.Fatalf("run %d: %d tries, state %s; want 0 tries and an end within 10 runs", runs, j.Tries, j.State)
		}
	}
	for subscriber, want := range map[string]int{"anna": 0, "ben": simCount} {
		_, total, err := f.db.SIMs.List(t.Context(), 1, sim.Scope{Subscriber: subscriber}, sim.Query{Page: relay.Page{Number: 1, PerPage: 1}})
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the number of SIMs of "+subscriber, total, want)
	}
	if runs < 2 {
		t.Errorf("got %d runs, want at least 2", runs)
	}
}

// Without turns, two reassignments could move the same SIMs back and forth forever.
func TestOldReassignmentsTakeTurns(t *testing.T) {
	f := newFixtureWith(t, provisioning.Options{RunTime: -time.Nanosecond}) // each run ends at its first check of the clock
	sims := make([]sim.SIM, 1100)
	for i := range sims {
		sims[i] = sim.SIM{ICCID: sim.ICCID(fmt.Sprintf("8945%015d", i)), State: sim.Active, Subscriber: "anna"}
	}
	relaytest.NoError(t, f.db.SIMs.Declare(t.Context(), 1, sims, false))
	firstID, err := f.a.Reassign(t.Context(), 1, provisioning.Reassignment{Target: "ben", Source: "anna"})
	relaytest.NoError(t, err)
	secondID, err := f.a.Reassign(t.Context(), 1, provisioning.Reassignment{Target: "anna", Source: "ben"})
	relaytest.NoError(t, err)
	for range 10 {
		if f.runJob(firstID).State != job.Processing || f.runJob(secondID).State != job.Processing {
			t.Fatal("a reassignment ended before the other one ran")
		}
		f.clock.Advance(time.Second)
	}
	f.clock.Advance(time.Minute)
	for range 10 {
		f.runJob(secondID)
		f.runJob(firstID)
		f.clock.Advance(time.Second)
	}
	relaytest.Equal(t, "the states of both jobs", []job.State{f.runJob(firstID).State, f.runJob(secondID).State}, []job.State{job.Completed, job.Completed})
}

func TestReassignReturnsTheErrorOfTheFirstSIM(t *testing.T) {
	f := newFixture(t)
	for _, iccid := range []string{"8944000000000000001", "8944000000000000002"} {
		relaytest.NoError(t, f.db.DB.Run(t.Context(), "test", fmt.Sprintf(`
CREATE TRIGGER fail_%[1]s BEFORE UPDATE ON sim WHEN OLD.iccid = '%[1]s'
BEGIN SELECT RAISE(ABORT, 'change of %[1]s'); END`, iccid)))
	}
	input, err := json.Marshal(provisioning.Reassignment{Target: "anna", ICCIDs: []sim.ICCID{"8944000000000000001", "8944000000000000002"}})
	relaytest.NoError(t, err)
	_, err = f.a.Runners(f)[provisioning.BulkReassign.Kind()](t.Context(), job.Job{ID: "j", Account: 1, Input: input, CreatedAt: f.clock.Now()})
	if !strings.Contains(fmt.Sprint(err), "change of 8944000000000000001") {
		t.Errorf("got error %v, want that of the first SIM", err)
	}
}
