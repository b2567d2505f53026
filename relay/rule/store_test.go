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

func atSecond(s float64) time.Time { return dbtest.TimeAt(s) }

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
		relaytest.NoError(t, r.devices.CreateDevice(t.Context(), acct, iot.Device{ID: id, Identifier: fmt.Sprint(acct, "-", id), CreatedAt: atSecond(0)}, nil))
	}
}

func testRule(id string) rule.Rule {
	return rule.Rule{
		ID: id, Name: "Rule <" + id + ">", Enabled: true, On: rule.OnReading, When: "values.t > 30", For: time.Minute,
		Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"a@example.com"}}}, CreatedAt: atSecond(1), UpdatedAt: atSecond(2),
	}
}

func TestStore(t *testing.T) {
	suite := func(t *testing.T, url func(testing.TB) string) {
		for name, test := range map[string]func(*testing.T, storeRig){
			"rules are saved": rulesAreSaved, "another account's rules are not found": otherAccountsRules, "each change increments the version": versionIncrements, "failures are added": failuresAreAdded,
			"a decision is one transaction": decisionIsOneTransaction, "a decision that fails changes nothing": failedDecision,
			"decisions skip deleted rules and devices": decisionsSkipDeleted, "deliveries of a decision are created once": deliveriesAreCreatedOnce,
			"alarms are listed": alarmsAreListed, "an alarm is acknowledged": alarmIsAcknowledged, "rules and alarms of all accounts are listed": rulesAndAlarmsOfAllAccounts,
			"due states are leased": dueStatesAreLeased, "devices are watched": devicesAreWatched, "watches are leased": watchesAreLeased,
			"mutes are merged and expire":                         mutesAreMerged,
			"a rule that cannot be decrypted is skipped":          undecryptableRule,
			"the states of deleted rules and devices are deleted": statesAreDeleted,
			"a batch with a count is sent when it is full":        batchByCount, "a batch with a time is sent when it is due": batchByTime, "a frame is in a batch once": frameIsBatchedOnce,
		} {
			t.Run(name, func(t *testing.T) {
				test(t, newStoreRig(dbtest.Open(t, db.Options{URL: url(t), Now: func() time.Time { return atSecond(50) }})))
			})
		}
	}
	t.Run("on SQLite", func(t *testing.T) { suite(t, func(testing.TB) string { return "" }) })
	t.Run("on PostgreSQL", func(t *testing.T) { suite(t, dbtest.Shared(t).NewDatabase) })
}

func mutesAreMerged(t *testing.T, s storeRig) {
	const day = 24 * 3600
	mute1 := rule.Mute{RuleID: "r1", Since: atSecond(10), Until: atSecond(70), By: "Ann"}
	prolonged := rule.Mute{RuleID: "r1", Since: atSecond(60), Until: atSecond(120), By: "Bob"}
	mute2 := rule.Mute{RuleID: "r1", Since: atSecond(200), Until: atSecond(260), By: "Ann"}
	deviceMute := rule.Mute{DeviceID: "d", Since: atSecond(20), Until: atSecond(30), By: "Ann"}
	for _, m := range []rule.Mute{mute1, prolonged, mute2, deviceMute} {
		relaytest.NoError(t, s.PutMute(t.Context(), 1, m))
	}
	relaytest.NoError(t, s.PutMute(t.Context(), 2, mute1), s.EndMute(t.Context(), 1, "r1", "", atSecond(210)))
	dbtest.WantKind(t, s.EndMute(t.Context(), 1, "r1", "", atSecond(220)), relay.KindNotFound)
	relaytest.NoError(t, s.Sweep(t.Context(), atSecond(30*day)), s.Sweep(t.Context(), atSecond(30*day+100)))
	mutes := relaytest.Must(s.Mutes(t.Context(), 1))(t)
	slices.SortFunc(mutes, func(a, b rule.Mute) int { return a.Since.Compare(b.Since) })
	relaytest.Equal(t, "the mutes", mutes, []rule.Mute{
		{RuleID: "r1", Since: atSecond(10), Until: atSecond(120), By: "Bob"}, {RuleID: "r1", Since: atSecond(200), Until: atSecond(210), By: "Ann"},
	})
}

func undecryptableRule(t *testing.T, s storeRig) {
	s.db.SetSealer(dbtest.Sealer{})
	s.addDevices(t, 1, "d")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")), s.Create(t.Context(), 1, testRule("r2")))
	dbtest.Tamper(t, s.db, "rule", "doc", "id = 'r1'")
	want := []rule.Rule{{ID: "r1", CreatedAt: atSecond(1), Undecryptable: true}, testRule("r2")}
	relaytest.Equal(t, "rules of the account", relaytest.Must(s.Rules(t.Context(), 1))(t), want)
	found, err := s.FindRules(t.Context(), 0, rule.Cursor{}, 9)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "rules of all accounts", []rule.Rule{found[0].Record, found[1].Record}, want)
	if _, err := s.Rule(t.Context(), 1, "r1"); !errors.Is(err, relay.ErrUndecryptable) {
		t.Errorf("the undecryptable rule: %v, want %v", err, relay.ErrUndecryptable)
	}
	var decided []string
	_, err = s.SaveDecision(t.Context(), 1, []rule.Pair{{RuleID: "r1", DeviceID: "d"}, {RuleID: "r2", DeviceID: "d"}}, atSecond(99), func(states []rule.PairState) (rule.Decision, error) {
		decided = nil
		for _, st := range states {
			decided = append(decided, st.RuleID)
		}
		return rule.Decision{}, nil
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the decided rules", decided, []string{"r2"})
}

func rulesAreSaved(t *testing.T, s storeRig) {
	r := testRule("r1")
	relaytest.NoError(t, s.Create(t.Context(), 1, r))
	if err := s.Create(t.Context(), 1, r); relay.KindOf(err) != relay.KindConflict {
		t.Errorf("second creation: %v, want kind conflict", err)
	}
	relaytest.Equal(t, "the saved rule", relaytest.Must(s.Rule(t.Context(), 1, "r1"))(t), r)
	errRefused := errors.New("no")
	if _, err := s.Change(t.Context(), 1, "r1", func(*rule.Rule) error { return errRefused }, keepStates, atSecond(3)); !errors.Is(err, errRefused) {
		t.Errorf("a change that returns an error: %v, want %v", err, errRefused)
	}
	changed, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Name = "new"; return nil }, keepStates, atSecond(3))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the changed name", changed.Name, "new")
	relaytest.Equal(t, "the unchanged condition", changed.When, r.When)
	newer := testRule("r0")
	newer.CreatedAt = atSecond(5)
	relaytest.NoError(t, s.Create(t.Context(), 1, newer))
	if rules, err := s.Rules(t.Context(), 1); err != nil {
		t.Error(err)
	} else if len(rules) != 2 {
		t.Errorf("%d rules, want 2", len(rules))
	} else {
		relaytest.Equal(t, "the ID of rule 0", rules[0].ID, "r1")
		relaytest.Equal(t, "the name of rule 0", rules[0].Name, "new")
	}
	relaytest.NoError(t, s.Delete(t.Context(), 1, "r1", atSecond(9)))
	if err := s.Delete(t.Context(), 1, "r1", atSecond(9)); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("second deletion: %v, want not found", err)
	}
}

func keepStates(_, _ rule.Rule) bool  { return false }
func resetStates(_, _ rule.Rule) bool { return true }

func otherAccountsRules(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	_, err := s.Rule(t.Context(), 2, "r1")
	_, err2 := s.Change(t.Context(), 2, "r1", func(*rule.Rule) error { return nil }, resetStates, atSecond(3))
	_, err3 := s.Alarm(t.Context(), 2, "none")
	for _, err := range []error{err, err2, err3, s.Delete(t.Context(), 2, "r1", atSecond(3))} {
		if relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("got error %v, want not found", err)
		}
	}
	relaytest.Equal(t, "the number of rules of another account", len(relaytest.Must(s.Rules(t.Context(), 2))(t)), 0)
}

func versionIncrements(t *testing.T, s storeRig) {
	version := func() iot.Version {
		versions, err := s.devices.Versions(t.Context(), []relay.AccountID{1})
		relaytest.NoError(t, err)
		return versions[1]
	}
	oldVersion := version()
	relaytest.Equal(t, "the rule version of an account without rules", oldVersion.Rules, 0)
	for _, tc := range []struct {
		name   string
		change func() error
	}{
		{"after creation", func() error { return s.Create(t.Context(), 1, testRule("r1")) }},
		{"after a change", func() error {
			_, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Enabled = false; return nil }, keepStates, atSecond(3))
			return err
		}},
		{"after deletion", func() error { return s.Delete(t.Context(), 1, "r1", atSecond(9)) }},
	} {
		relaytest.NoError(t, tc.change())
		newVersion := version()
		if newVersion.Rules <= oldVersion.Rules || newVersion.Records != oldVersion.Records {
			t.Errorf("%s: version %+v after %+v, want a higher rule version only", tc.name, newVersion, oldVersion)
		}
		oldVersion = newVersion
	}
}

func failuresAreAdded(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	for i := range 2 {
		relaytest.NoError(t, s.AddFailures(t.Context(), map[iot.Ref]rule.Failures{
			{Account: 1, ID: "r1"}: {Count: 3, LastAt: atSecond(float64(i)), Last: fmt.Sprint("why ", i)}, {Account: 2, ID: "r1"}: {},
		}))
	}
	relaytest.Equal(t, "the failures of the rule", relaytest.Must(s.Rule(t.Context(), 1, "r1"))(t).Failures, rule.Failures{Count: 6, LastAt: atSecond(1), Last: "why 1"})
	got, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Name = "x"; return nil }, keepStates, atSecond(3))
	if stored, err2 := s.Rule(t.Context(), 1, "r1"); err != nil || err2 != nil || got.Failures != (rule.Failures{}) || stored.Failures != got.Failures {
		t.Errorf("failures after a change: %+v, want none; %v, %v", stored.Failures, err, err2)
	}
}

// raiseAll returns a function that raises an alarm for each state. The IDs begin with prefix.
func raiseAll(prefix string) func([]rule.PairState) (rule.Decision, error) {
	return func(states []rule.PairState) (d rule.Decision, err error) {
		for _, st := range states {
			st.AlarmID, st.RaisedAt, st.ChangedAt, st.FrameAt, st.Record = prefix+st.DeviceID+st.RuleID, atSecond(10.5), atSecond(11), atSecond(10.5), "rec"
			d.States = append(d.States, st)
			d.Raised = append(d.Raised, rule.Alarm{
				ID: st.AlarmID, RuleID: st.RuleID, DeviceID: st.DeviceID, State: rule.Raised, RaisedAt: st.RaisedAt, RaisedBy: "rec",
				Readings: map[string]rule.Value{"t": {Value: 31, Units: "°C"}},
			})
			d.Deliveries = append(d.Deliveries, deliveryOf(prefix+st.DeviceID+st.RuleID))
		}
		return d, nil
	}
}

func deliveryOf(id string) outbox.Delivery {
	return outbox.Delivery{ID: id, Account: 1, Kind: outbox.KindRelay, CreatedAt: atSecond(1), Request: &outbox.Request{Method: "POST", URL: "https://example.com/"}}
}

func decisionIsOneTransaction(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")), s.Create(t.Context(), 1, testRule("r2")))
	pairs := []rule.Pair{{RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d2"}, {RuleID: "r1", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d1"}}
	var locked []rule.Pair
	created, err := s.SaveDecision(t.Context(), 1, pairs, atSecond(80), func(states []rule.PairState) (rule.Decision, error) {
		for _, st := range states {
			locked = append(locked, st.Pair)
			relaytest.Equal(t, "the state of a new pair", st, rule.PairState{Pair: st.Pair})
		}
		return raiseAll("a")(states)
	})
	relaytest.NoError(t, err)
	if len(created) != 3 {
		t.Fatalf("%d deliveries, want 3", len(created))
	}
	relaytest.Equal(t, "the state of delivery 0", created[0].State, outbox.Queued)
	relaytest.Equal(t, "the next attempt of delivery 0", created[0].NextAttemptAt, atSecond(80))
	if want := []rule.Pair{{RuleID: "r1", DeviceID: "d1"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d2"}}; !slices.Equal(locked, want) {
		t.Errorf("locked pairs %v, want %v", locked, want)
	}
	states, err := s.PairStates(t.Context(), 1, []string{"d2", "d3"})
	want := rule.PairState{Pair: rule.Pair{RuleID: "r1", DeviceID: "d2"}, AlarmID: "ad2r1", RaisedAt: atSecond(10.5), ChangedAt: atSecond(11), FrameAt: atSecond(10.5), Record: "rec"}
	relaytest.NoError(t, err)
	if len(states) != 1 {
		t.Fatalf("%d states, want 1", len(states))
	}
	relaytest.Equal(t, "the raised state", states[0], want)
	_, err = s.SaveDecision(t.Context(), 1, pairs[1:2], atSecond(80), func(states []rule.PairState) (d rule.Decision, err error) {
		relaytest.Equal(t, "the states of the next decision", states, []rule.PairState{want})
		startOccurrence := rule.Occurrence{Record: "rec2", Device: iot.Device{ID: "d2"}, Readings: map[string]rule.Value{"t": {Text: "é", IsText: true}}}
		d.States = []rule.PairState{{Pair: states[0].Pair, ChangedAt: atSecond(12), Since: atSecond(12), StartOccurrence: &startOccurrence, Due: atSecond(72), Repeats: 3, ActionsRanAt: atSecond(12)}}
		d.Cleared = []rule.Alarm{{ID: "ad2r1", ClearedAt: atSecond(12), ClearedBy: "rec2"}}
		return d, nil
	})
	relaytest.NoError(t, err)
	if cleared, err := s.PairStates(t.Context(), 1, []string{"d2"}); err != nil || len(cleared) != 1 || cleared[0].StartOccurrence == nil || cleared[0].StartOccurrence.Record != "rec2" ||
		cleared[0].StartOccurrence.Readings["t"].Text != "é" || !cleared[0].Due.Equal(atSecond(72)) || cleared[0].AlarmID != "" || cleared[0].Repeats != 3 {
		t.Errorf("states after the alarm was cleared = %+v, error %v; want one without an alarm, due at 72 s, with the start occurrence rec2 and 3 repeats", cleared, err)
	}
	a, err := s.Alarm(t.Context(), 1, "ad2r1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state of the alarm", a.State, rule.Cleared)
	relaytest.Equal(t, "the time at which the alarm was cleared", a.ClearedAt, atSecond(12))
	relaytest.Equal(t, "the record that cleared the alarm", a.ClearedBy, "rec2")
	relaytest.Equal(t, "the record that raised the alarm", a.RaisedBy, "rec")
	relaytest.Equal(t, "the reading of the alarm", a.Readings["t"].Value, 31)
	if alarms, err := s.AlarmsOfRecord(t.Context(), 1, "d2", "rec2"); err != nil {
		t.Error(err)
	} else if len(alarms) != 1 {
		t.Errorf("%d alarms of the record, want 1", len(alarms))
	} else {
		relaytest.Equal(t, "the alarm of the record", alarms[0].ID, "ad2r1")
	}
}

func failedDecision(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	errRefused := errors.New("no")
	pairs := []rule.Pair{{RuleID: "r1", DeviceID: "d1"}}
	if _, err := s.SaveDecision(t.Context(), 1, pairs, atSecond(80), func([]rule.PairState) (rule.Decision, error) { return rule.Decision{}, errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("got error %v, want %v", err, errRefused)
	}
	decideNothing := func([]rule.PairState) (rule.Decision, error) { return rule.Decision{}, nil }
	if _, err := s.SaveDecision(t.Context(), 1, pairs, atSecond(80), decideNothing); err != nil {
		t.Error(err)
	}
	relaytest.Equal(t, "the number of states", len(relaytest.Must(s.PairStates(t.Context(), 1, []string{"d1"}))(t)), 0)
}

func decisionsSkipDeleted(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	pairs := []rule.Pair{{RuleID: "r1", DeviceID: "d2"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d1"}}
	relaytest.Equal(t, "the number of deliveries", len(relaytest.Must(s.SaveDecision(t.Context(), 1, pairs, atSecond(80), raiseAll("a")))(t)), 1)
	// Another gateway may still have the enabled rule in its cache.
	_, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Enabled = false; return nil }, resetStates, atSecond(81))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of deliveries of a disabled rule", len(relaytest.Must(s.SaveDecision(t.Context(), 1, pairs, atSecond(90), raiseAll("b")))(t)), 0)
}

func deliveriesAreCreatedOnce(t *testing.T, s storeRig) {
	forward := func([]rule.PairState) (rule.Decision, error) {
		return rule.Decision{Deliveries: []outbox.Delivery{deliveryOf("x"), deliveryOf("y"), deliveryOf("x")}}, nil
	}
	relaytest.Equal(t, "the number of deliveries", len(relaytest.Must(s.SaveDecision(t.Context(), 1, nil, atSecond(80), forward))(t)), 2)
	relaytest.Equal(t, "the number of deliveries of the same decision again", len(relaytest.Must(s.SaveDecision(t.Context(), 1, nil, atSecond(80), forward))(t)), 0)
	relaytest.Equal(t, "the state of the delivery", relaytest.Must(s.deliveries.Get(t.Context(), 1, "y"))(t).State, outbox.Queued)
}

func alarmsAreListed(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2", "d3", "d4", "d5")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")), s.Create(t.Context(), 1, testRule("r2")))
	for i, p := range []rule.Pair{{RuleID: "r1", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d2"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r1", DeviceID: "d3"}, {RuleID: "r1", DeviceID: "d4"}} {
		_, err := s.SaveDecision(t.Context(), 1, []rule.Pair{p}, atSecond(80), func(states []rule.PairState) (rule.Decision, error) {
			d, err := raiseAll("a")(states)
			d.Raised[0].RaisedAt = atSecond(float64(i / 2)) // pairs of alarms have the same time
			return d, err
		})
		relaytest.NoError(t, err)
	}
	raised, err := s.CountRaised(t.Context())
	relaytest.NoError(t, err)
	relaytest.Equal(t, "raised alarms by account", raised, map[relay.AccountID]int64{1: 5})
	ids := func(f rule.AlarmFilter) (list []string, nextCursor string) {
		f.Limit = max(f.Limit, 2)
		alarms, nextCursor, err := s.Alarms(t.Context(), 1, f)
		relaytest.NoError(t, err)
		for _, a := range alarms {
			list = append(list, a.Record.ID)
		}
		return list, nextCursor
	}
	var paged []string
	for cursor := ""; ; {
		page, nextCursor := ids(rule.AlarmFilter{Cursor: cursor})
		if paged = append(paged, page...); nextCursor == "" {
			break
		}
		cursor = nextCursor
	}
	if want := []string{"ad4r1", "ad3r1", "ad1r2", "ad2r1", "ad1r1"}; !slices.Equal(paged, want) {
		t.Errorf("pages of alarms %v, want %v", paged, want)
	}
	for name, tc := range map[string]struct {
		filter rule.AlarmFilter
		want   []string
	}{
		"of a rule":                    {rule.AlarmFilter{RuleID: "r2"}, []string{"ad1r2"}},
		"of a device":                  {rule.AlarmFilter{DeviceID: "d1"}, []string{"ad1r2", "ad1r1"}},
		"raised at From or later":      {rule.AlarmFilter{From: atSecond(2)}, []string{"ad4r1"}},
		"raised at To or earlier":      {rule.AlarmFilter{To: atSecond(0)}, []string{"ad2r1", "ad1r1"}},
		"that are cleared":             {rule.AlarmFilter{State: rule.Cleared}, nil},
		"that are raised in the range": {rule.AlarmFilter{State: rule.Raised, From: atSecond(1), To: atSecond(1)}, []string{"ad3r1", "ad1r2"}},
	} {
		if got, _ := ids(tc.filter); !slices.Equal(got, tc.want) {
			t.Errorf("alarms %s: %v, want %v", name, got, tc.want)
		}
	}
	if _, _, err := s.Alarms(t.Context(), 1, rule.AlarmFilter{Cursor: "no cursor", Limit: 2}); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("an invalid cursor: %v, want kind invalid", err)
	}
}

// rulesAndAlarmsOfAllAccounts lists the rules of two accounts in pages of two, and their alarms.
func rulesAndAlarmsOfAllAccounts(t *testing.T, s storeRig) {
	for _, acct := range []relay.AccountID{1, 2} {
		s.addDevices(t, acct, "d1")
		for i, id := range []string{"r2", "r1"} {
			r := testRule(id)
			r.CreatedAt = atSecond(float64(i))
			relaytest.NoError(t, s.Create(t.Context(), acct, r))
		}
		_, err := s.SaveDecision(t.Context(), acct, []rule.Pair{{RuleID: "r1", DeviceID: "d1"}}, atSecond(80), raiseAll("a"+acct.String()))
		relaytest.NoError(t, err)
	}
	for acct, want := range map[relay.AccountID]string{0: "1 r2 1 r1 2 r2 2 r1", 2: "2 r2 2 r1"} {
		got, lastRef := []string{}, rule.Cursor{}
		for {
			page, err := s.FindRules(t.Context(), acct, lastRef, 2)
			relaytest.NoError(t, err)
			for _, r := range page {
				got = append(got, r.Account.String(), r.Record.ID)
				lastRef = rule.Cursor{Account: r.Account, CreatedAt: r.Record.CreatedAt, ID: r.Record.ID}
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
		alarms, _, err := s.Alarms(t.Context(), acct, rule.AlarmFilter{Limit: 10})
		relaytest.NoError(t, err)
		if len(alarms) != want {
			t.Fatalf("%d alarms of account %d, want %d", len(alarms), acct, want)
		}
	}
}

func alarmIsAcknowledged(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	_, err := s.SaveDecision(t.Context(), 1, []rule.Pair{{RuleID: "r1", DeviceID: "d1"}}, atSecond(80), raiseAll("a"))
	relaytest.NoError(t, err)
	_, err = s.ChangeAlarm(t.Context(), 1, "ad1r1", func(a *rule.Alarm) error {
		a.AcknowledgedAt, a.AcknowledgedBy, a.Note = atSecond(20), "me", "seen"
		return nil
	})
	relaytest.NoError(t, err)
	a, err := s.Alarm(t.Context(), 1, "ad1r1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the note", a.Note, "seen")
	relaytest.Equal(t, "the user of the acknowledgement", a.AcknowledgedBy, "me")
	relaytest.Equal(t, "the time of the acknowledgement", a.AcknowledgedAt, atSecond(20))
	relaytest.Equal(t, "the state", a.State, rule.Raised)
	relaytest.Equal(t, "the reading", a.Readings["t"].Value, 31)
}

func dueStatesAreLeased(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	for i, id := range []string{"d1", "d2"} {
		_, err := s.SaveDecision(t.Context(), 1, []rule.Pair{{RuleID: "r1", DeviceID: id}}, atSecond(80), func(states []rule.PairState) (rule.Decision, error) {
			states[0].ChangedAt, states[0].Since, states[0].Due = atSecond(1), atSecond(1), atSecond(float64(60+10*i))
			return rule.Decision{States: states}, nil
		})
		relaytest.NoError(t, err)
	}
	leaseDue := func(now float64) []rule.AccountRecord[rule.PairState] {
		states, err := s.LeaseDue(t.Context(), atSecond(now), atSecond(now+8), 10)
		relaytest.NoError(t, err)
		return states
	}
	relaytest.Equal(t, "the number of states before they are due", len(leaseDue(59)), 0)
	if states := leaseDue(60); len(states) != 1 || states[0].Account != 1 || states[0].Record.Pair != (rule.Pair{RuleID: "r1", DeviceID: "d1"}) {
		t.Errorf("due states %+v, want that of d1", states)
	}
	relaytest.Equal(t, "the number of states during the lease", len(leaseDue(61)), 0)
	relaytest.Equal(t, "the number of states after the lease", len(leaseDue(70)), 2)
}

func silentRule() rule.Rule {
	r := testRule("r1")
	r.On, r.When, r.For, r.SilentFor = rule.OnSilent, "", 0, time.Hour
	return r
}

func devicesAreWatched(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2", "d3")
	s.addDevices(t, 2, "d9")
	relaytest.NoError(t, s.Create(t.Context(), 1, silentRule()))
	relaytest.Equal(t, "the number of enrolments before the delay", len(relaytest.Must(s.LeaseEnrolments(t.Context(), atSecond(51), atSecond(59)))(t)), 0)
	enrolments, err := s.LeaseEnrolments(t.Context(), atSecond(60), atSecond(68))
	relaytest.NoError(t, err)
	if len(enrolments) != 1 {
		t.Fatalf("%d enrolments, want 1", len(enrolments))
	}
	relaytest.Equal(t, "the account of the enrolment", enrolments[0].Account, 1)
	hasMore, err := s.Enrol(t.Context(), &enrolments[0], atSecond(60), atSecond(68), 2)
	if err != nil || !hasMore {
		t.Fatalf("more = %v, want true; %v", hasMore, err)
	}
	enrolments, err = s.LeaseEnrolments(t.Context(), atSecond(68), atSecond(76)) // the lease of the first gateway has ended
	relaytest.NoError(t, err)
	if len(enrolments) != 1 {
		t.Fatalf("%d enrolments, want 1", len(enrolments))
	}
	relaytest.Equal(t, "the last enrolled device", enrolments[0].LastDeviceID, "d2")
	if hasMore, err = s.Enrol(t.Context(), &enrolments[0], atSecond(68), atSecond(76), 2); err != nil || hasMore {
		t.Fatalf("more = %v, want false; %v", hasMore, err)
	}
	relaytest.Equal(t, "the number of enrolments at the end", len(relaytest.Must(s.LeaseEnrolments(t.Context(), atSecond(99), atSecond(100)))(t)), 0)
	s.addDevices(t, 1, "d4")
	relaytest.Equal(t, "the number of due watches", len(relaytest.Must(s.LeaseWatches(t.Context(), atSecond(68), atSecond(76), 10))(t)), 3)
	if watches, err := s.LeaseWatches(t.Context(), atSecond(110), atSecond(111), 10); err != nil || len(watches) != 4 { // d4 a minute after its creation
		t.Errorf("watches %+v, want 4; %v", watches, err)
	}
}

func watchesAreLeased(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, silentRule()))
	s.addDevices(t, 1, "d1", "d2")
	leaseDue := func(now float64) (deviceIDs []string) {
		watches, err := s.LeaseWatches(t.Context(), atSecond(now), atSecond(now+8), 10)
		relaytest.NoError(t, err)
		for _, w := range watches {
			deviceIDs = append(deviceIDs, w.DeviceID)
		}
		slices.Sort(deviceIDs)
		return deviceIDs
	}
	relaytest.Equal(t, "the due devices", leaseDue(110), []string{"d1", "d2"})
	_, err := s.devices.ChangeDevice(t.Context(), 1, "d2", func(d *iot.Device) error { d.Name = "new"; return nil })
	relaytest.NoError(t, err, s.RescheduleWatches(t.Context(), atSecond(118), []rule.Watch{{Account: 1, DeviceID: "d1", Due: atSecond(200)}, {Account: 1, DeviceID: "d2"}}))
	if ids := leaseDue(119); !slices.Equal(ids, []string{"d2"}) { // d2 was changed during the lease
		t.Errorf("due devices %v, want d2", ids)
	}
	relaytest.NoError(t, s.RescheduleWatches(t.Context(), atSecond(127), []rule.Watch{{Account: 1, DeviceID: "d2"}}))
	relaytest.Equal(t, "the due devices much later", leaseDue(1e6), []string{"d1"})
	_, err = s.SaveDecision(t.Context(), 1, nil, atSecond(80), func([]rule.PairState) (rule.Decision, error) {
		return rule.Decision{SilenceChecks: []string{"d2"}}, nil
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the due devices after a decision", leaseDue(51), []string{"d2"})
}

func statesAreDeleted(t *testing.T, s storeRig) {
	s.addDevices(t, 1, "d1", "d2")
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")), s.Create(t.Context(), 1, testRule("r2")), s.Create(t.Context(), 1, testRule("r3")))
	_, err := s.SaveDecision(t.Context(), 1, []rule.Pair{
		{RuleID: "r1", DeviceID: "d1"}, {RuleID: "r2", DeviceID: "d1"}, {RuleID: "r2", DeviceID: "d2"}, {RuleID: "r3", DeviceID: "d2"},
	}, atSecond(80), raiseAll("a"))
	relaytest.NoError(t, err, s.devices.DeleteDevice(t.Context(), 1, "d1"), s.Delete(t.Context(), 1, "r2", atSecond(90)))
	_, err = s.Change(t.Context(), 1, "r3", func(r *rule.Rule) error { r.When = "false"; return nil }, resetStates, atSecond(91))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of states", len(relaytest.Must(s.PairStates(t.Context(), 1, []string{"d1", "d2"}))(t)), 0)
	alarms, _, err := s.Alarms(t.Context(), 1, rule.AlarmFilter{Limit: 10, State: rule.Cleared})
	relaytest.NoError(t, err)
	if len(alarms) != 4 {
		t.Fatalf("%d cleared alarms, want 4", len(alarms))
	}
}

func testItem(record string, s float64, b rule.Batch) rule.Item {
	return rule.Item{RuleID: "r1", Batch: b, CollectedAt: atSecond(s), Occurrence: rule.Occurrence{Record: record, Time: atSecond(s), State: rule.Forwarded}}
}

// take takes a batch and returns the records of its frames.
func (r storeRig) take(t *testing.T, b rule.Batch, now float64) (records []string, hasMore bool) {
	t.Helper()
	created, hasMore, err := r.TakeBatch(t.Context(), rule.BatchRef{Account: 1, RuleID: "r1"}, b, atSecond(now), atSecond(now+30), func(occurrences []rule.Occurrence) ([]outbox.Delivery, error) {
		for _, o := range occurrences {
			records = append(records, o.Record)
		}
		return []outbox.Delivery{deliveryOf(records[0])}, nil
	})
	relaytest.NoError(t, err)
	if len(created) != min(1, len(records)) {
		t.Errorf("%d deliveries of the records %v, want %d", len(created), records, min(1, len(records)))
	}
	return records, hasMore
}

func batchByCount(t *testing.T, s storeRig) {
	b := rule.Batch{Count: 2}
	batchRule := testRule("r1")
	batchRule.Batch = b
	relaytest.NoError(t, s.Create(t.Context(), 1, batchRule))
	collect := func(items ...rule.Item) int {
		full, err := s.Collect(t.Context(), 1, items)
		relaytest.NoError(t, err)
		return len(full)
	}
	if n := collect(testItem("a", 2, b)); n != 0 {
		t.Errorf("%d full batches, want 0", n)
	}
	if records, _ := s.take(t, b, 5); len(records) != 0 {
		t.Errorf("took %v, want no records", records)
	}
	if n := collect(testItem("b", 1, b), testItem("c", 3, b), testItem("d", 4, b), testItem("e", 5, b)); n != 1 {
		t.Errorf("%d full batches, want 1", n)
	}
	for _, want := range []struct {
		records []string
		hasMore bool
	}{{[]string{"b", "a"}, true}, {[]string{"c", "d"}, false}, {nil, false}} {
		if records, hasMore := s.take(t, b, 6); !slices.Equal(records, want.records) || hasMore != want.hasMore {
			t.Errorf("took %v, more %v; want %v", records, hasMore, want)
		}
	}
	relaytest.Equal(t, "the number of due batches", len(relaytest.Must(s.DueBatches(t.Context(), atSecond(1e9), 10))(t)), 0)
	_, err := s.Change(t.Context(), 1, "r1", func(r *rule.Rule) error { r.Batch = rule.Batch{}; return nil }, keepStates, atSecond(7))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of due batches after the rule's batch was removed", len(relaytest.Must(s.DueBatches(t.Context(), atSecond(8), 10))(t)), 1)
	if records, hasMore := s.take(t, rule.Batch{}, 8); !slices.Equal(records, []string{"e"}) || hasMore {
		t.Errorf("took %v, more %v; want e only", records, hasMore)
	}
}

func batchByTime(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	b := rule.Batch{Every: 10 * time.Second}
	_, err := s.Collect(t.Context(), 1, []rule.Item{testItem("a", 1, b)})
	_, err2 := s.Collect(t.Context(), 1, []rule.Item{testItem("b", 4, b)})
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the number of due batches after 9 s", len(relaytest.Must(s.DueBatches(t.Context(), atSecond(10), 10))(t)), 0)
	if due, err := s.DueBatches(t.Context(), atSecond(11), 10); err != nil {
		t.Error(err)
	} else if len(due) != 1 {
		t.Errorf("%d due batches, want 1", len(due))
	} else {
		relaytest.Equal(t, "the due batch", due[0], rule.BatchRef{Account: 1, RuleID: "r1"})
	}
	if records, hasMore := s.take(t, b, 11); !slices.Equal(records, []string{"a", "b"}) || hasMore {
		t.Errorf("took %v, more %v; want a and b", records, hasMore)
	}
	relaytest.Equal(t, "the number of due batches afterwards", len(relaytest.Must(s.DueBatches(t.Context(), atSecond(1e9), 10))(t)), 0)
}

func frameIsBatchedOnce(t *testing.T, s storeRig) {
	relaytest.NoError(t, s.Create(t.Context(), 1, testRule("r1")))
	b := rule.Batch{Count: 1}
	for range 2 {
		_, err := s.Collect(t.Context(), 1, []rule.Item{testItem("a", 1, b), testItem("a", 1, b)})
		relaytest.NoError(t, err)
	}
	if records, hasMore := s.take(t, b, 6); !slices.Equal(records, []string{"a"}) || hasMore {
		t.Errorf("took %v, more %v; want a once", records, hasMore)
	}
	full, err := s.Collect(t.Context(), 1, []rule.Item{testItem("a", 1, b)})
	relaytest.NoError(t, err)
	if len(full) != 0 {
		t.Fatalf("%d full batches after a sent frame was collected again, want 0", len(full))
	}
	deletedRule := testItem("x", 1, b)
	deletedRule.RuleID = "gone"
	relaytest.Equal(t, "the number of full batches of a deleted rule", len(relaytest.Must(s.Collect(t.Context(), 1, []rule.Item{deletedRule}))(t)), 0)
	relaytest.NoError(t, s.Sweep(context.WithoutCancel(t.Context()), atSecond(7+25*3600)))
	relaytest.Equal(t, "the number of full batches a day later", len(relaytest.Must(s.Collect(t.Context(), 1, []rule.Item{testItem("a", 1, b)}))(t)), 1)
}
