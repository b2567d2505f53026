package rule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

func at(s float64) time.Time { return dbtest.At(s) }

// storeRig has the stores of one database.
type storeRig struct {
	*rule.Store
	db         *db.DB
	devices    *iot.Store
	deliveries *outbox.Store
}

func newStoreRig(db *db.DB) storeRig {
	return storeRig{rule.NewStore(db), db, iot.NewStore(db, rule.OnDevice), outbox.NewStore(db)}
}

// addDevices creates devices of an account by id.
func (r storeRig) addDevices(t *testing.T, acct relay.AccountID, ids ...string) {
	t.Helper()
	for _, id := range ids {
		relaytest.NoError(t, r.devices.CreateDevice(t.Context(), acct, iot.Device{ID: id, Identifier: fmt.Sprint(acct, "-", id), CreatedAt: at(0)}, nil))
	}
}

func ruleOf(id string) rule.Rule {
	return rule.Rule{
		ID: id, Name: "Rule <" + id + ">", Enabled: true, On: rule.OnReading, When: "values.t > 30", For: time.Minute,
		Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"a@example.com"}}}, CreatedAt: at(1), UpdatedAt: at(2),
	}
}

func TestStore(t *testing.T) {
	suite := func(t *testing.T, url func(testing.TB) string) {
		for name, test := range map[string]func(*testing.T, storeRig){
			"rules are kept": rulesAreKept, "another account's rules": othersRules, "versions": versions, "failures": failuresAdd,
			"a decision is one step": decisionIsOneStep, "a decision that fails changes nothing": failedDecision,
			"rules and devices that are gone": goneAreNotDecided, "deliveries of a decision are created once": deliveriesOnce,
			"alarms are listed": alarmsAreListed, "an alarm is acknowledged": alarmIsAcknowledged, "rules and alarms of all accounts": rulesAndAlarmsOfAll,
			"due states are leased": dueIsLeased, "devices are watched": devicesAreWatched, "watches are leased": watchesAreLeased,
			"mutes are kept":                         mutesAreKept,
			"a rule that does not open":              unopenedRule,
			"what is deleted takes its states along": deletions,
			"a batch by count":                       batchByCount, "a batch by time": batchByTime, "a frame is in a batch once": batchOnce,
		} {
			t.Run(name, func(t *testing.T) {
				test(t, newStoreRig(dbtest.Open(t, db.Options{URL: url(t), Now: func() time.Time { return at(50) }})))
			})
		}
	}
	t.Run("on SQLite", func(t *testing.T) { suite(t, func(testing.TB) string { return "" }) })
	t.Run("on PostgreSQL", func(t *testing.T) { suite(t, dbtest.Shared(t).NewDatabase) })
}

func mutesAreKept(t *testing.T, s storeRig) {
	const day = 24 * 3600
	first := rule.Mute{RuleID: "r1", Since: at(10), Until: at(70), By: "Ann"}
	prolonged := rule.Mute{RuleID: "r1", Since: at(60), Until: at(120), By: "Bob"}
	second := rule.Mute{RuleID: "r1", Since: at(200), Until: at(260), By: "Ann"}
	device := rule.Mute{DeviceID: "d", Since: at(20), Until: at(30), By: "Ann"}
	for _, m := range []rule.Mute{first, prolonged, second, device} {
		relaytest.NoError(t, s.PutMute(t.Context(), 1, m))
	}
	relaytest.NoError(t, s.PutMute(t.Context(), 2, first), s.EndMute(t.Context(), 1, "r1", "", at(210)))
	dbtest.WantKind(t, s.EndMute(t.Context(), 1, "r1", "", at(220)), relay.KindNotFound)
	relaytest.NoError(t, s.Sweep(t.Context(), at(30*day)), s.Sweep(t.Context(), at(30*day+100)))
	mutes := relaytest.Must(s.Mutes(t.Context(), 1))(t)
	slices.SortFunc(mutes, func(a, b rule.Mute) int { return a.Since.Compare(b.Since) })
	relaytest.Equal(t, "the mutes", mutes, []rule.Mute{
		{RuleID: "r1", Since: at(10), Until: at(120), By: "Bob"}, {RuleID: "r1", Since: at(200), Until: at(210), By: "Ann"},
	})
}

func unopenedRule(t *testing.T, s storeRig) {
	s.db.SetSealer(dbtest.Sealer{})
	s.addDevices(t, 1, "d")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")), s.Create(t.Context(), 1, ruleOf("r2")))
	dbtest.Tamper(t, s.db, "rule", "doc", "id = 'r1'")
	want := []rule.Rule{{ID: "r1", CreatedAt: at(1), Unopened: true}, ruleOf("r2")}
	relaytest.Equal(t, "rules of the account", relaytest.Must(s.Rules(t.Context(), 1))(t), want)
	found, err := s.FindRules(t.Context(), 0, rule.Ref{}, 9)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "rules of all accounts", []rule.Rule{found[0].Of, found[1].Of}, want)
	if _, err := s.Rule(t.Context(), 1, "r1"); !errors.Is(err, relay.ErrUnopened) {
		t.Errorf("the rule that does not open: error %v", err)
	}
	var decided []string
	_, err = s.Decide(t.Context(), 1, []rule.Pair{{RuleID: "r1", DeviceID: "d"}, {RuleID: "r2", DeviceID: "d"}}, at(99), func(states []rule.PairState) (rule.Decision, error) {
		decided = nil
		for _, st := range states {
			decided = append(decided, st.RuleID)
		}
		return rule.Decision{}, nil
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "rules that were decided", decided, []string{"r2"})
}

func rulesAreKept(t *testing.T, s storeRig) {
	r := ruleOf("r1")
	relaytest.NoError(t, s.Create(t.Context(), 1, r))
	if err := s.Create(t.Context(), 1, r); relay.KindOf(err) != relay.KindConflict {
		t.Errorf("created twice: %v", err)
	}
	relaytest.Equal(t, "result of Rule", relaytest.Must(s.Rule(t.Context(), 1, "r1"))(t), r)
	refused := errors.New("no")
	if _, err := s.Change(t.Context(), 1, "r1", func(*rule.Rule) error { return refused }, never, at(3)); !errors.Is(err, refused) {
		t.Errorf("a change that is refused: %v", err)
	}
	changed, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Name = "new"; return nil }, never, at(3))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Change, Name", changed.Name, "new")
	relaytest.Equal(t, "result of Change, When", changed.When, r.When)
	other := ruleOf("r0")
	other.CreatedAt = at(5)
	relaytest.NoError(t, s.Create(t.Context(), 1, other))
	if all, err := s.Rules(t.Context(), 1); err != nil {
		t.Error(err)
	} else if len(all) != 2 {
		t.Errorf("result of Rules: %d results, want %d", len(all), 2)
	} else {
		relaytest.Equal(t, "result of Rules, [0].ID", all[0].ID, "r1")
		relaytest.Equal(t, "result of Rules, [0].Name", all[0].Name, "new")
	}
	relaytest.NoError(t, s.Delete(t.Context(), 1, "r1", at(9)))
	if err := s.Delete(t.Context(), 1, "r1", at(9)); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("deleted twice: %v", err)
	}
}

func never(_, _ rule.Rule) bool  { return false }
func always(_, _ rule.Rule) bool { return true }

func othersRules(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	_, err := s.Rule(t.Context(), 2, "r1")
	_, err2 := s.Change(t.Context(), 2, "r1", func(*rule.Rule) error { return nil }, always, at(3))
	_, err3 := s.Alarm(t.Context(), 2, "none")
	for _, err := range []error{err, err2, err3, s.Delete(t.Context(), 2, "r1", at(3))} {
		if relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("got %v", err)
		}
	}
	relaytest.Equal(t, "number of results of Rules", len(relaytest.Must(s.Rules(t.Context(), 2))(t)), 0)
}

func versions(t *testing.T, s storeRig) {
	version := func() iot.Version {
		of, err := s.devices.Versions(t.Context(), []relay.AccountID{1})
		relaytest.NoError(t, err)
		return of[1]
	}
	was := version()
	relaytest.Equal(t, "of an account without rules, Rules", was.Rules, 0)
	for _, tc := range []struct {
		name   string
		change func() error
	}{
		{"created", func() error { return s.Create(t.Context(), 1, ruleOf("r1")) }},
		{"changed", func() error {
			_, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Enabled = false; return nil }, never, at(3))
			return err
		}},
		{"deleted", func() error { return s.Delete(t.Context(), 1, "r1", at(9)) }},
	} {
		relaytest.NoError(t, tc.change())
		now := version()
		if now.Rules <= was.Rules || now.Records != was.Records {
			t.Errorf("%s: %+v after %+v", tc.name, now, was)
		}
		was = now
	}
}

func failuresAdd(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	for i := range 2 {
		relaytest.NoError(t, s.Fail(t.Context(), map[iot.Ref]rule.Failures{
			{Account: 1, ID: "r1"}: {Count: 3, LastAt: at(float64(i)), Last: fmt.Sprint("why ", i)}, {Account: 2, ID: "r1"}: {},
		}))
	}
	relaytest.Equal(t, "result of Rule, Failures", relaytest.Must(s.Rule(t.Context(), 1, "r1"))(t).Failures, rule.Failures{Count: 6, LastAt: at(1), Last: "why 1"})
	got, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Name = "x"; return nil }, never, at(3))
	if kept, err2 := s.Rule(t.Context(), 1, "r1"); err != nil || err2 != nil || got.Failures != (rule.Failures{}) || kept.Failures != got.Failures {
		t.Errorf("after a change: %+v, %v, %v", kept.Failures, err, err2)
	}
}

// raising returns a function that raises the alarm of every state.
func raising(n string) func([]rule.PairState) (rule.Decision, error) {
	return func(all []rule.PairState) (d rule.Decision, err error) {
		for _, st := range all {
			st.AlarmID, st.RaisedAt, st.At, st.FrameAt, st.Record = n+st.DeviceID+st.RuleID, at(10.5), at(11), at(10.5), "rec"
			d.States = append(d.States, st)
			d.Raised = append(d.Raised, rule.Alarm{
				ID: st.AlarmID, RuleID: st.RuleID, DeviceID: st.DeviceID, State: rule.Raised, RaisedAt: st.RaisedAt, RaisedBy: "rec",
				Readings: map[string]rule.Value{"t": {Value: 31, Units: "°C"}},
			})
			d.Deliveries = append(d.Deliveries, deliveryOf(n+st.DeviceID+st.RuleID))
		}
		return d, nil
	}
}

func deliveryOf(id string) outbox.Delivery {
	return outbox.Delivery{ID: id, Account: 1, Kind: outbox.KindRelay, CreatedAt: at(1), Request: &outbox.Request{Method: "POST", URL: "https://example.com/"}}
}

func decisionIsOneStep(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")), s.Create(t.Context(), 1, ruleOf("r2")))
	pairs := []rule.Pair{{RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d2"}, {RuleID: "r1", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d1"}}
	var locked []rule.Pair
	created, err := s.Decide(t.Context(), 1, pairs, at(80), func(all []rule.PairState) (rule.Decision, error) {
		for _, st := range all {
			locked = append(locked, st.Pair)
			relaytest.Equal(t, "st", st, rule.PairState{Pair: st.Pair})
		}
		return raising("a")(all)
	})
	relaytest.NoError(t, err)
	if len(created) != 3 {
		t.Fatalf("created: %d results, want %d", len(created), 3)
	}
	relaytest.Equal(t, "created[0].State", created[0].State, outbox.Queued)
	relaytest.Equal(t, "created[0].NextAttemptAt", created[0].NextAttemptAt, at(80))
	if want := []rule.Pair{{RuleID: "r1", DeviceID: "d1"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d2"}}; !slices.Equal(locked, want) {
		t.Errorf("locked %v", locked)
	}
	all, err := s.PairStates(t.Context(), 1, []string{"d2", "d3"})
	want := rule.PairState{Pair: rule.Pair{RuleID: "r1", DeviceID: "d2"}, AlarmID: "ad2r1", RaisedAt: at(10.5), At: at(11), FrameAt: at(10.5), Record: "rec"}
	relaytest.NoError(t, err)
	if len(all) != 1 {
		t.Fatalf("all: %d results, want %d", len(all), 1)
	}
	relaytest.Equal(t, "all[0]", all[0], want)
	_, err = s.Decide(t.Context(), 1, pairs[1:2], at(80), func(all []rule.PairState) (d rule.Decision, err error) {
		relaytest.Equal(t, "result of Decide, all", all, []rule.PairState{want})
		began := rule.Occurrence{Record: "rec2", Device: iot.Device{ID: "d2"}, Readings: map[string]rule.Value{"t": {Text: "é", IsText: true}}}
		d.States = []rule.PairState{{Pair: all[0].Pair, At: at(12), Since: at(12), Began: &began, Due: at(72), Repeats: 3, RanAt: at(12)}}
		d.Cleared = []rule.Alarm{{ID: "ad2r1", ClearedAt: at(12), ClearedBy: "rec2"}}
		return d, nil
	})
	relaytest.NoError(t, err)
	if all, err := s.PairStates(t.Context(), 1, []string{"d2"}); err != nil || len(all) != 1 || all[0].Began == nil || all[0].Began.Record != "rec2" ||
		all[0].Began.Readings["t"].Text != "é" || !all[0].Due.Equal(at(72)) || all[0].AlarmID != "" || all[0].Repeats != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	a, err := s.Alarm(t.Context(), 1, "ad2r1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Alarm, State", a.State, rule.Cleared)
	relaytest.Equal(t, "result of Alarm, ClearedAt", a.ClearedAt, at(12))
	relaytest.Equal(t, "result of Alarm, ClearedBy", a.ClearedBy, "rec2")
	relaytest.Equal(t, "result of Alarm, RaisedBy", a.RaisedBy, "rec")
	relaytest.Equal(t, "result of Alarm, Readings[t].Value", a.Readings["t"].Value, 31)
	if of, err := s.AlarmsOfRecord(t.Context(), 1, "d2", "rec2"); err != nil {
		t.Error(err)
	} else if len(of) != 1 {
		t.Errorf("result of OfRecord: %d results, want %d", len(of), 1)
	} else {
		relaytest.Equal(t, "result of OfRecord, [0].ID", of[0].ID, "ad2r1")
	}
}

func failedDecision(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	refused := errors.New("no")
	pairs := []rule.Pair{{RuleID: "r1", DeviceID: "d1"}}
	if _, err := s.Decide(t.Context(), 1, pairs, at(80), func([]rule.PairState) (rule.Decision, error) { return rule.Decision{}, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	nothing := func([]rule.PairState) (rule.Decision, error) { return rule.Decision{}, nil }
	if _, err := s.Decide(t.Context(), 1, pairs, at(80), nothing); err != nil {
		t.Error(err)
	}
	relaytest.Equal(t, "number of results of PairStates", len(relaytest.Must(s.PairStates(t.Context(), 1, []string{"d1"}))(t)), 0)
}

func goneAreNotDecided(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	pairs := []rule.Pair{{RuleID: "r1", DeviceID: "d2"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d1"}}
	relaytest.Equal(t, "number of results of Decide", len(relaytest.Must(s.Decide(t.Context(), 1, pairs, at(80), raising("a")))(t)), 1)
	// Another gateway may still have the rule before its change.
	_, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Enabled = false; return nil }, func(rule.Rule, rule.Rule) bool { return true }, at(81))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "of a rule that was disabled: number of results", len(relaytest.Must(s.Decide(t.Context(), 1, pairs, at(90), raising("b")))(t)), 0)
}

func deliveriesOnce(t *testing.T, s storeRig) {
	forward := func([]rule.PairState) (rule.Decision, error) {
		return rule.Decision{Deliveries: []outbox.Delivery{deliveryOf("x"), deliveryOf("y"), deliveryOf("x")}}, nil
	}
	relaytest.Equal(t, "number of results of Decide", len(relaytest.Must(s.Decide(t.Context(), 1, nil, at(80), forward))(t)), 2)
	relaytest.Equal(t, "again: number of results", len(relaytest.Must(s.Decide(t.Context(), 1, nil, at(80), forward))(t)), 0)
	relaytest.Equal(t, "result of Get, State", relaytest.Must(s.deliveries.Get(t.Context(), 1, "y"))(t).State, outbox.Queued)
}

func alarmsAreListed(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2", "d3", "d4", "d5")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")), s.Create(t.Context(), 1, ruleOf("r2")))
	for i, p := range []rule.Pair{{RuleID: "r1", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d2"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d3"}, {RuleID: "r1", DeviceID: "d4"}} {
		_, err := s.Decide(t.Context(), 1, []rule.Pair{p}, at(80), func(all []rule.PairState) (rule.Decision, error) {
			d, err := raising("a")(all)
			d.Raised[0].RaisedAt = at(float64(i / 2)) // some at the same time
			return d, err
		})
		relaytest.NoError(t, err)
	}
	raised, err := s.CountRaised(t.Context())
	relaytest.NoError(t, err)
	relaytest.Equal(t, "raised alarms by account", raised, map[relay.AccountID]int64{1: 5})
	ids := func(f rule.AlarmFilter) (out []string, next string) {
		f.Limit = max(f.Limit, 2)
		all, next, err := s.Alarms(t.Context(), 1, f)
		relaytest.NoError(t, err)
		for _, a := range all {
			out = append(out, a.Of.ID)
		}
		return out, next
	}
	var paged []string
	for cursor := ""; ; {
		page, next := ids(rule.AlarmFilter{Cursor: cursor})
		if paged = append(paged, page...); next == "" {
			break
		}
		cursor = next
	}
	if want := []string{"ad4r1", "ad3r1", "ad1r2", "ad2r1", "ad1r1"}; !slices.Equal(paged, want) {
		t.Errorf("%v, want %v", paged, want)
	}
	for name, tc := range map[string]struct {
		f    rule.AlarmFilter
		want []string
	}{
		"of a rule":   {rule.AlarmFilter{RuleID: "r2"}, []string{"ad1r2"}},
		"of a device": {rule.AlarmFilter{DeviceID: "d1"}, []string{"ad1r2", "ad1r1"}},
		"from":        {rule.AlarmFilter{From: at(2)}, []string{"ad4r1"}},
		"to":          {rule.AlarmFilter{To: at(0)}, []string{"ad2r1", "ad1r1"}},
		"cleared":     {rule.AlarmFilter{State: rule.Cleared}, nil},
		"raised":      {rule.AlarmFilter{State: rule.Raised, From: at(1), To: at(1)}, []string{"ad3r1", "ad1r2"}},
	} {
		if got, _ := ids(tc.f); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if _, _, err := s.Alarms(t.Context(), 1, rule.AlarmFilter{Cursor: "no cursor", Limit: 2}); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("got %v", err)
	}
}

// rulesAndAlarmsOfAll lists the rules and alarms of two accounts, in pages of two.
func rulesAndAlarmsOfAll(t *testing.T, s storeRig) {
	for _, acct := range []relay.AccountID{1, 2} {
		s.addDevices(t, acct, "d1")
		for i, id := range []string{"r2", "r1"} {
			r := ruleOf(id)
			r.CreatedAt = at(float64(i))
			relaytest.NoError(t, s.Create(t.Context(), acct, r))
		}
		_, err := s.Decide(t.Context(), acct, []rule.Pair{{RuleID: "r1", DeviceID: "d1"}}, at(80), raising("a"+acct.String()))
		relaytest.NoError(t, err)
	}
	for acct, want := range map[relay.AccountID]string{0: "1 r2 1 r1 2 r2 2 r1", 2: "2 r2 2 r1"} {
		got, after := []string{}, rule.Ref{}
		for {
			page, err := s.FindRules(t.Context(), acct, after, 2)
			relaytest.NoError(t, err)
			for _, r := range page {
				got = append(got, r.Account.String(), r.Of.ID)
				after = rule.Ref{Account: r.Account, CreatedAt: r.Of.CreatedAt, ID: r.Of.ID}
			}
			if len(page) < 2 {
				break
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("rules of %d: %v, want %s", acct, got, want)
		}
	}
	for acct, want := range map[relay.AccountID]int{0: 2, 1: 1, 3: 0} {
		all, _, err := s.Alarms(t.Context(), acct, rule.AlarmFilter{Limit: 10})
		relaytest.NoError(t, err)
		if len(all) != want {
			t.Fatalf("alarms of: %d results, want %d", len(all), want)
		}
	}
}

func alarmIsAcknowledged(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	_, err := s.Decide(t.Context(), 1, []rule.Pair{{RuleID: "r1", DeviceID: "d1"}}, at(80), raising("a"))
	relaytest.NoError(t, err)
	_, err = s.ChangeAlarm(t.Context(), 1, "ad1r1", func(a *rule.Alarm) error {
		a.AcknowledgedAt, a.AcknowledgedBy, a.Note = at(20), "me", "seen"
		return nil
	})
	relaytest.NoError(t, err)
	a, err := s.Alarm(t.Context(), 1, "ad1r1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Alarm, Note", a.Note, "seen")
	relaytest.Equal(t, "result of Alarm, AcknowledgedBy", a.AcknowledgedBy, "me")
	relaytest.Equal(t, "result of Alarm, AcknowledgedAt", a.AcknowledgedAt, at(20))
	relaytest.Equal(t, "result of Alarm, State", a.State, rule.Raised)
	relaytest.Equal(t, "result of Alarm, Readings[t].Value", a.Readings["t"].Value, 31)
}

func dueIsLeased(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	for i, id := range []string{"d1", "d2"} {
		_, err := s.Decide(t.Context(), 1, []rule.Pair{{RuleID: "r1", DeviceID: id}}, at(80), func(all []rule.PairState) (rule.Decision, error) {
			all[0].At, all[0].Since, all[0].Due = at(1), at(1), at(float64(60+10*i))
			return rule.Decision{States: all}, nil
		})
		relaytest.NoError(t, err)
	}
	due := func(now float64) []rule.Owned[rule.PairState] {
		all, err := s.LeaseDue(t.Context(), at(now), at(now+8), 10)
		relaytest.NoError(t, err)
		return all
	}
	relaytest.Equal(t, "early: number of results", len(due(59)), 0)
	if all := due(60); len(all) != 1 || all[0].Account != 1 || all[0].Of.Pair != (rule.Pair{RuleID: "r1", DeviceID: "d1"}) {
		t.Errorf("%+v", all)
	}
	relaytest.Equal(t, "leased: number of results", len(due(61)), 0)
	relaytest.Equal(t, "after the lease: number of results", len(due(70)), 2)
}

func silentRule() rule.Rule {
	r := ruleOf("r1")
	r.On, r.When, r.For, r.SilentFor = rule.OnSilent, "", 0, time.Hour
	return r
}

func devicesAreWatched(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2", "d3")
	s.addDevices(t, 2, "d9")
	relaytest.NoError(t, s.Create(t.Context(), 1, silentRule()))
	relaytest.Equal(t, "at once: number of results", len(relaytest.Must(s.LeaseEnrolments(t.Context(), at(51), at(59)))(t)), 0)
	all, err := s.LeaseEnrolments(t.Context(), at(60), at(68))
	relaytest.NoError(t, err)
	if len(all) != 1 {
		t.Fatalf("result of LeaseEnrolments: %d results, want %d", len(all), 1)
	}
	relaytest.Equal(t, "result of LeaseEnrolments, [0].Account", all[0].Account, 1)
	more, err := s.Enrol(t.Context(), &all[0], at(60), at(68), 2)
	if err != nil || !more {
		t.Fatalf("%v, %v", more, err)
	}
	all, err = s.LeaseEnrolments(t.Context(), at(68), at(76)) // the one who enrolled has died
	relaytest.NoError(t, err)
	if len(all) != 1 {
		t.Fatalf("result of LeaseEnrolments: %d results, want %d", len(all), 1)
	}
	relaytest.Equal(t, "result of LeaseEnrolments, [0].After", all[0].After, "d2")
	if more, err = s.Enrol(t.Context(), &all[0], at(68), at(76), 2); err != nil || more {
		t.Fatalf("%v, %v", more, err)
	}
	relaytest.Equal(t, "at the end: number of results", len(relaytest.Must(s.LeaseEnrolments(t.Context(), at(99), at(100)))(t)), 0)
	s.addDevices(t, 1, "d4")
	relaytest.Equal(t, "number of results of LeaseWatches", len(relaytest.Must(s.LeaseWatches(t.Context(), at(68), at(76), 10))(t)), 3)
	if watches, err := s.LeaseWatches(t.Context(), at(110), at(111), 10); err != nil || len(watches) != 4 { // d4 a minute after its creation
		t.Errorf("%+v, %v", watches, err)
	}
}

func watchesAreLeased(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, silentRule()))
	s.addDevices(t, 1, "d1", "d2")
	due := func(now float64) (ids []string) {
		all, err := s.LeaseWatches(t.Context(), at(now), at(now+8), 10)
		relaytest.NoError(t, err)
		for _, w := range all {
			ids = append(ids, w.DeviceID)
		}
		slices.Sort(ids)
		return ids
	}
	relaytest.Equal(t, "result of due", due(110), []string{"d1", "d2"})
	_, err := s.devices.ChangeDevice(t.Context(), 1, "d2", func(d *iot.Device) error { d.Name = "new"; return nil })
	relaytest.NoError(t, err, s.MoveWatches(t.Context(), at(118), []rule.Watch{{Account: 1, DeviceID: "d1", Due: at(200)}, {Account: 1, DeviceID: "d2"}}))
	if ids := due(119); !slices.Equal(ids, []string{"d2"}) { // it has changed meanwhile
		t.Errorf("%v", ids)
	}
	relaytest.NoError(t, s.MoveWatches(t.Context(), at(127), []rule.Watch{{Account: 1, DeviceID: "d2"}}))
	relaytest.Equal(t, "result of due", due(1e6), []string{"d1"})
	_, err = s.Decide(t.Context(), 1, nil, at(80), func([]rule.PairState) (rule.Decision, error) { return rule.Decision{Watch: []string{"d2"}}, nil })
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of due", due(51), []string{"d2"})
}

func deletions(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2")
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")), s.Create(t.Context(), 1, ruleOf("r2")), s.Create(t.Context(), 1, ruleOf("r3")))
	_, err := s.Decide(t.Context(), 1, []rule.Pair{
		{RuleID: "r1", DeviceID: "d1"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r2", DeviceID: "d2"}, {RuleID: "r3", DeviceID: "d2"},
	}, at(80), raising("a"))
	relaytest.NoError(t, err, s.devices.DeleteDevice(t.Context(), 1, "d1"), s.Delete(t.Context(), 1, "r2", at(90)))
	_, err = s.Change(t.Context(), 1, "r3", func(r *rule.Rule) error { r.When = "false"; return nil }, always, at(91))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "number of results of PairStates", len(relaytest.Must(s.PairStates(t.Context(), 1, []string{"d1", "d2"}))(t)), 0)
	all, _, err := s.Alarms(t.Context(), 1, rule.AlarmFilter{Limit: 10, State: rule.Cleared})
	relaytest.NoError(t, err)
	if len(all) != 4 {
		t.Fatalf("result of Alarms: %d results, want %d", len(all), 4)
	}
}

func itemOf(record string, s float64, b rule.Batch) rule.Item {
	return rule.Item{RuleID: "r1", Batch: b, At: at(s), Occurrence: rule.Occurrence{Record: record, Time: at(s), State: rule.Forwarded}}
}

// take takes a batch, and returns the records of its frames.
func (r storeRig) take(t *testing.T, b rule.Batch, now float64) (records []string, more bool) {
	t.Helper()
	created, more, err := r.TakeBatch(t.Context(), rule.BatchRef{Account: 1, RuleID: "r1"}, b, at(now), at(now+30), func(all []rule.Occurrence) ([]outbox.Delivery, error) {
		for _, o := range all {
			records = append(records, o.Record)
		}
		return []outbox.Delivery{deliveryOf(records[0])}, nil
	})
	relaytest.NoError(t, err)
	if len(created) != min(1, len(records)) {
		t.Errorf("%d deliveries of %v", len(created), records)
	}
	return records, more
}

func batchByCount(t *testing.T, s storeRig) {
	b := rule.Batch{Count: 2}
	batching := ruleOf("r1")
	batching.Batch = b
	relaytest.NoError(t, s.Create(t.Context(), 1, batching))
	collect := func(items ...rule.Item) int {
		full, err := s.Collect(t.Context(), 1, items)
		relaytest.NoError(t, err)
		return len(full)
	}
	if n := collect(itemOf("a", 2, b)); n != 0 {
		t.Errorf("%d full", n)
	}
	if records, _ := s.take(t, b, 5); len(records) != 0 {
		t.Errorf("took %v", records)
	}
	if n := collect(itemOf("b", 1, b), itemOf("c", 3, b), itemOf("d", 4, b), itemOf("e", 5, b)); n != 1 {
		t.Errorf("%d full", n)
	}
	for _, want := range []struct {
		records []string
		more    bool
	}{{[]string{"b", "a"}, true}, {[]string{"c", "d"}, false}, {nil, false}} {
		if records, more := s.take(t, b, 6); !slices.Equal(records, want.records) || more != want.more {
			t.Errorf("%v, %v, want %v", records, more, want)
		}
	}
	relaytest.Equal(t, "number of results of DueBatches", len(relaytest.Must(s.DueBatches(t.Context(), at(1e9), 10))(t)), 0)
	_, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Batch = rule.Batch{}; return nil }, func(rule.Rule, rule.Rule) bool { return false }, at(7))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "due after the rule has lost its batch: number of results", len(relaytest.Must(s.DueBatches(t.Context(), at(8), 10))(t)), 1)
	if records, more := s.take(t, rule.Batch{}, 8); !slices.Equal(records, []string{"e"}) || more {
		t.Errorf("%v, %v", records, more)
	}
}

func batchByTime(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	b := rule.Batch{Every: 10 * time.Second}
	_, err := s.Collect(t.Context(), 1, []rule.Item{itemOf("a", 1, b)})
	_, err2 := s.Collect(t.Context(), 1, []rule.Item{itemOf("b", 4, b)})
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "number of results of DueBatches", len(relaytest.Must(s.DueBatches(t.Context(), at(10), 10))(t)), 0)
	if due, err := s.DueBatches(t.Context(), at(11), 10); err != nil {
		t.Error(err)
	} else if len(due) != 1 {
		t.Errorf("result of DueBatches: %d results, want %d", len(due), 1)
	} else {
		relaytest.Equal(t, "result of DueBatches, [0]", due[0], rule.BatchRef{Account: 1, RuleID: "r1"})
	}
	if records, more := s.take(t, b, 11); !slices.Equal(records, []string{"a", "b"}) || more {
		t.Errorf("%v, %v", records, more)
	}
	relaytest.Equal(t, "number of results of DueBatches", len(relaytest.Must(s.DueBatches(t.Context(), at(1e9), 10))(t)), 0)
}

func batchOnce(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, ruleOf("r1")))
	b := rule.Batch{Count: 1}
	for range 2 {
		_, err := s.Collect(t.Context(), 1, []rule.Item{itemOf("a", 1, b), itemOf("a", 1, b)})
		relaytest.NoError(t, err)
	}
	if records, more := s.take(t, b, 6); !slices.Equal(records, []string{"a"}) || more {
		t.Errorf("%v, %v", records, more)
	}
	full, err := s.Collect(t.Context(), 1, []rule.Item{itemOf("a", 1, b)})
	relaytest.NoError(t, err)
	if len(full) != 0 {
		t.Fatalf("sent already: %d results, want %d", len(full), 0)
	}
	other := itemOf("x", 1, b)
	other.RuleID = "gone"
	relaytest.Equal(t, "a rule that is gone: number of results", len(relaytest.Must(s.Collect(t.Context(), 1, []rule.Item{other}))(t)), 0)
	relaytest.NoError(t, s.Sweep(context.WithoutCancel(t.Context()), at(7+25*3600)))
	relaytest.Equal(t, "after a day: number of results", len(relaytest.Must(s.Collect(t.Context(), 1, []rule.Item{itemOf("a", 1, b)}))(t)), 1)
}
