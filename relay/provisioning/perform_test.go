package provisioning_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

const pending = "8944000000000000001"

func TestWhatTheOperatorSays(t *testing.T) {
	for name, tc := range map[string]struct {
		report      provisioning.Report
		state       job.State
		reason, now string // why the job failed, where the SIM is then
		told        string
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
			y := newYard(t)
			y.answer = func(provisioning.Command) (provisioning.Report, error) { return tc.report, nil }
			id, err := y.ask(provisioning.Activate, pending)
			relaytest.NoError(t, err)
			j, one := y.run(id), y.sim(pending)
			if j.State != tc.state || j.Error != tc.reason || fmt.Sprint(one.State, " ", one.Requested) != tc.now || one.Job != "" || y.types() != tc.told {
				t.Errorf("%s %q; %+v; told %q", j.State, j.Error, one, y.types())
			}
			if data := y.events["job-"+id].Data.(map[string]any); data["iccid"] != pending || data["action"] != provisioning.Activate || data["status"] != tc.state {
				t.Errorf("%v", data)
			}
		})
	}
}

func TestAnActivatedSIMIsHeldToItsLimits(t *testing.T) {
	for do, want := range map[provisioning.Action]string{provisioning.Activate: "[" + pending + "]", provisioning.Unsuspend: "[8944000000000000003]", provisioning.Suspend: "[]"} {
		y := newYard(t)
		id, err := y.ask(do, map[provisioning.Action]string{provisioning.Activate: pending, provisioning.Unsuspend: "8944000000000000003", provisioning.Suspend: "8944000000000000002"}[do])
		relaytest.NoError(t, err)
		if j := y.run(id); j.State != job.Completed || fmt.Sprint(y.held) != want {
			t.Errorf("%s: %s, held %v", do, j.State, y.held)
		}
	}
}

func TestAnOperatorThatIsDownIsAskedAgainWithTheSameCommand(t *testing.T) {
	y := newYard(t)
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
		if j.State != job.Processing || !j.Due.Equal(y.clock().Add(pause)) || y.sim(pending).Job != id {
			t.Fatalf("run %d: %s until %s, now %s", i+1, j.State, j.Due, y.clock())
		}
		y.later(pause)
	}
	if j := y.run(id); j.State != job.Completed || y.sim(pending).State != sim.Active {
		t.Errorf("%+v", j)
	}
	for _, one := range ids {
		if one != id {
			t.Errorf("commands %q of the job %s", ids, id)
		}
	}
}

func TestAnOperatorThatNeverReportsFailsTheJob(t *testing.T) {
	y := newYard(t)
	y.answer = func(provisioning.Command) (provisioning.Report, error) {
		return provisioning.Report{Pending: true}, nil
	}
	id, err := y.ask(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	y.later(23 * time.Hour)
	if j := y.run(id); j.State != job.Processing {
		t.Fatalf("%+v", j)
	}
	y.later(time.Hour)
	if j, one := y.run(id), y.sim(pending); j.State != job.Failed || j.Error != "The operator did not report in time." || one.Job != "" || one.Requested != sim.Pending {
		t.Errorf("%+v %+v", j, one)
	}
}

func TestARunThatIsRepeatedChangesNothingMore(t *testing.T) {
	for _, refused := range []string{"", "barred"} {
		y := newYard(t)
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
			t.Fatalf("once more: %v", err)
		}
		y.answer = func(provisioning.Command) (provisioning.Report, error) {
			return provisioning.Report{Refused: "not the first word"}, nil
		}
		j, second := y.run(id), y.outcome(early)
		if j.State != first.State() || j.Error != refused || second.State() != first.State() || second.Error != refused || len(y.notice) != 1 {
			t.Errorf("%+v, then %s %s, then %+v; commands %q", first, j.State, j.Error, second, y.notice)
		}
	}
}

func TestAJobThatFailsWithoutAnEndGivesTheSIMFree(t *testing.T) {
	y := newYard(t)
	id, err := y.ask(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	j, err := y.a.Job(t.Context(), 1, id)
	relaytest.NoError(t, err)
	for range 2 {
		relaytest.NoError(t, y.finish(j, job.Outcome{Error: "internal error"}))
	}
	if one := y.sim(pending); one.Job != "" || one.Requested != sim.Pending || y.types() != "job.failed" {
		t.Errorf("%+v, told %q", one, y.types())
	}
}

func TestASIMThatWasTakenAwayFromItsJob(t *testing.T) {
	for name, tc := range map[string]struct {
		what func(y *yard) error
		want string
	}{
		"it was removed": {func(y *yard) error { return y.db.SIMs.Delete(y.t.Context(), 1, pending) }, "The SIM is no longer there."},
		"it was set anew": {func(y *yard) error {
			return y.db.SIMs.Declare(y.t.Context(), 1, []sim.SIM{{ICCID: pending, State: sim.Suspended}}, true)
		}, "The SIM was set anew meanwhile."},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			id, err := y.ask(provisioning.Activate, pending)
			relaytest.NoError(t, err)
			relaytest.NoError(t, tc.what(y))
			if j := y.run(id); j.State != job.Failed || j.Error != tc.want || len(y.notice) != 0 {
				t.Errorf("%s %q, commands %q", j.State, j.Error, y.notice)
			}
		})
	}
}

func TestASubscriberIsRegisteredWithTheActivation(t *testing.T) {
	y := newYard(t)
	id, err := y.a.Activate(t.Context(), 1, pending, provisioning.Activation{New: &sim.Subscriber{Forename: " Zoe ", Surname: "Z"}})
	relaytest.NoError(t, err)
	all := sim.Query{Page: relay.Page{Number: 1, PerPage: 10}}
	if _, total, err := y.db.Subscribers.List(t.Context(), 1, all); err != nil || total != 2 {
		t.Fatalf("%d before the job ran, %v", total, err)
	}
	y.run(id)
	who, err := y.db.Subscribers.Get(t.Context(), 1, y.sim(pending).Subscriber)
	if err != nil || who.Forename != "Zoe" || who.Surname != "Z" {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestReassign(t *testing.T) {
	for name, tc := range map[string]struct {
		r    provisioning.Reassignment
		want string // subscribers of the first three SIMs
	}{
		"those named":           {provisioning.Reassignment{Target: "ben", Named: []string{pending, "8944000000000000002", pending}}, "ben ben anna"},
		"all of a subscriber's": {provisioning.Reassignment{Target: "ben", Source: "anna"}, "ben ben ben"},
		"of nobody":             {provisioning.Reassignment{Target: "anna", Source: "ben"}, "anna anna anna"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
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
			if j.State != job.Completed || got != tc.want || y.types() != "job.completed" {
				t.Errorf("%s %q: %s", j.State, j.Error, got)
			}
		})
	}
}

func TestJobsOfAnAccount(t *testing.T) {
	y := newYard(t)
	first, err := y.ask(provisioning.Activate, pending)
	relaytest.NoError(t, err)
	second, err := y.ask(provisioning.Suspend, "8944000000000000002")
	relaytest.NoError(t, err)
	y.run(first)
	found, total, err := y.a.ListJobs(t.Context(), 1, provisioning.JobFilter{}, relay.Page{Number: 1, PerPage: 10})
	if err != nil || total != 2 || found[0].ID != first || found[1].ID != second {
		t.Errorf("%+v of %d, %v", found, total, err)
	}
	found, total, err = y.a.ListJobs(t.Context(), 1, provisioning.JobFilter{State: job.Queued, Action: provisioning.Suspend}, relay.Page{Number: 1, PerPage: 10})
	if err != nil || total != 1 || found[0].ID != second || provisioning.ActionOf(found[0].Kind) != provisioning.Suspend {
		t.Errorf("%+v of %d, %v", found, total, err)
	}
	relaytest.NoError(t, y.db.Jobs.Create(t.Context(), job.Job{ID: "token", Account: 1, Kind: "token.claim", CreatedAt: y.clock()}))
	for acct, id := range map[int]string{1: "token", 2: first} {
		if _, err := y.a.Job(t.Context(), 1, "token"); relay.KindOf(err) != relay.KindNotFound || err.Error() != "Invalid job." {
			t.Errorf("%d %s: %v", acct, id, err)
		}
	}
	if _, err := y.a.Job(t.Context(), 2, first); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's: %v", err)
	}
	if _, err := provisioning.New(provisioning.Deps{}, provisioning.Options{}); err == nil {
		t.Error("actions of nothing")
	}
}

func TestALongReassignmentGoesOnWhereItWas(t *testing.T) {
	y := newYardWith(t, provisioning.Options{Slice: -time.Nanosecond}) // over with the first look at the clock
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
		y.later(time.Second)
		if runs++; j.Tries != 0 || runs > 10 {
			t.Fatalf("run %d: %+v", runs, j)
		}
	}
	for subscriber, want := range map[string]int{"anna": 0, "ben": many} {
		_, total, err := y.db.SIMs.List(t.Context(), 1, sim.Scope{Subscriber: subscriber}, sim.Query{Page: relay.Page{Number: 1, PerPage: 1}})
		if err != nil || total != want {
			t.Errorf("%s has %d, %v", subscriber, total, err)
		}
	}
	if runs < 2 {
		t.Errorf("%d slices", runs)
	}
}

// Two that pass the same SIMs to and fro would never end.
func TestOldReassignmentsTakeTurns(t *testing.T) {
	y := newYardWith(t, provisioning.Options{Slice: -time.Nanosecond}) // over with the first look at the clock
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
			t.Fatal("one came to an end: the test shows nothing")
		}
		y.later(time.Second)
	}
	y.later(time.Minute)
	for range 10 {
		y.run(two)
		y.run(one)
		y.later(time.Second)
	}
	if one, two := y.run(one), y.run(two); one.State != job.Completed || two.State != job.Completed {
		t.Errorf("%s, %s", one.State, two.State)
	}
}
