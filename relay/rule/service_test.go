package rule_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

func TestAFrameRaisesAnAlarmOnce(t *testing.T) {
	g := newGateway(t)
	g.create(rule.Rule{When: "values.t > 30", Clear: "values.t < 28"})
	frames := []iot.Arrival{temperature("a", 1, 20), temperature("a", 2, 31), temperature("b", 2, 10), temperature("a", 3, 32), temperature("a", 4, 27), temperature("a", 5, 35)}
	g.ingest(frames[0])
	g.wantAlarmsAndDeliveries("after a low temperature", nil, 0)
	g.ingest(frames[1:3]...)
	g.wantAlarmsAndDeliveries("after a high temperature", []string{"2–"}, 1)
	g.ingest(frames[3:]...)
	g.wantAlarmsAndDeliveries("after a low and a high temperature", []string{"2–4", "5–"}, 3)
	g.ingest(frames...)
	g.site.gateway().ingest(frames...)
	g.wantAlarmsAndDeliveries("after all frames again", []string{"2–4", "5–"}, 3)
	if n := len(g.dispatcher.deliveries); n != 3 {
		t.Fatalf("%d deliveries were dispatched, want 3", n)
	}
	for _, part := range []string{`"state":"raised"`, `"t":{"value":31,"units":"°C"}`} {
		if body := string(g.dispatcher.deliveries[0].Request.Body); !strings.Contains(body, part) {
			t.Errorf("the body lacks %s: %s", part, body)
		}
	}
}

func TestAMutedAlarmRunsNoActions(t *testing.T) {
	g := newGateway(t)
	r := g.create(rule.Rule{When: "values.t > 30", Clear: "values.t < 28"})
	otherGateway := g.site.gateway() // reads the mutes of the first
	mute := func(request rule.MuteRequest) {
		t.Helper()
		_, err := g.rules.Mute(t.Context(), 1, request, "Ann")
		relaytest.NoError(t, err)
	}
	mute(rule.MuteRequest{RuleID: r, For: "1m"})
	g.ingest(temperature("a", 1, 31))
	otherGateway.ingest(temperature("a", 2, 20))
	g.wantAlarmsAndDeliveries("while the rule is muted", []string{"1–2"}, 0)
	alarms, _, err := g.rules.Alarms(t.Context(), 1, rule.AlarmFilter{})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the end of the mute of the alarm", alarms[0].MutedUntil, base().Add(time.Minute))
	relaytest.NoError(t, g.rules.Unmute(t.Context(), 1, r, ""))
	g.ingest(temperature("a", 3, 31))
	g.wantAlarmsAndDeliveries("after the mute was ended", []string{"1–2", "3–"}, 1)
	mute(rule.MuteRequest{DeviceID: alarms[0].DeviceID, For: "1m"})
	g.ingest(temperature("a", 4, 20), temperature("b", 5, 31))
	g.wantAlarmsAndDeliveries("while one of two devices is muted", []string{"1–2", "3–4", "5–"}, 2)
	g.clock.set(61)
	g.ingest(temperature("a", 62, 31))
	g.wantAlarmsAndDeliveries("after the mute has ended", []string{"1–2", "3–4", "5–", "62–"}, 3)
	alarms, _, err = g.rules.Alarms(t.Context(), 1, rule.AlarmFilter{})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "whether the alarm has no mute", alarms[0].MutedUntil.IsZero(), true)
}

func TestAMuteCoversTheTimeOfTheFrames(t *testing.T) {
	const frame, mute, unmute = "frame", "mute", "unmute"
	type step struct {
		now     float64 // the clock, in seconds after base
		action  string
		sentAt  float64 // the time of a frame
		celsius float64
	}
	for _, tc := range []struct {
		name   string
		steps  []step // each mute lasts a minute
		states []string
	}{
		{
			"an alarm that was raised before the mute is cleared",
			[]step{{1, frame, 1, 31}, {10, mute, 0, 0}, {20, frame, 20, 20}},
			[]string{"raised", "cleared"},
		},
		{
			"an alarm is raised and cleared during the mute",
			[]step{{10, mute, 0, 0}, {20, frame, 20, 31}, {30, frame, 30, 20}},
			nil,
		},
		{
			"an alarm that was raised during the mute is cleared after it",
			[]step{{10, mute, 0, 0}, {20, frame, 20, 31}, {80, frame, 80, 20}},
			[]string{"cleared"},
		},
		{
			"a frame from before the mute is processed during the mute",
			[]step{{10, mute, 0, 0}, {30, frame, 5, 31}},
			[]string{"raised"},
		},
		{
			"a frame from the time of the mute is processed after the mute",
			[]step{{10, mute, 0, 0}, {90, frame, 30, 31}},
			nil,
		},
		{
			"a frame from before the end of the mute is processed after it",
			[]step{{10, mute, 0, 0}, {40, unmute, 0, 0}, {45, frame, 30, 31}},
			nil,
		},
		{
			"a frame is from the time after the mute was ended",
			[]step{{10, mute, 0, 0}, {40, unmute, 0, 0}, {45, frame, 40, 31}},
			[]string{"raised"},
		},
		{
			"a mute in force is prolonged",
			[]step{{10, mute, 0, 0}, {20, frame, 20, 31}, {60, mute, 0, 0}, {90, frame, 90, 20}},
			nil,
		},
		{
			"a mute follows one that has ended",
			[]step{{10, mute, 0, 0}, {200, mute, 0, 0}, {210, frame, 30, 31}, {220, frame, 100, 20}},
			[]string{"cleared"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			r := g.create(rule.Rule{When: "values.t > 30", Clear: "values.t < 28"})
			for _, current := range tc.steps {
				g.clock.set(current.now)
				relaytest.NoError(t, g.records.Rules.Sweep(t.Context(), g.clock.Now()))
				switch current.action {
				case frame:
					g.ingest(temperature("a", current.sentAt, current.celsius))
				case mute:
					_, err := g.rules.Mute(t.Context(), 1, rule.MuteRequest{RuleID: r, For: "1m"}, "Ann")
					relaytest.NoError(t, err)
				case unmute:
					relaytest.NoError(t, g.rules.Unmute(t.Context(), 1, r, ""))
				}
			}
			var states []string
			for _, d := range g.deliveries() {
				var body struct{ State string }
				relaytest.NoError(t, json.Unmarshal(d.Request.Body, &body))
				states = append(states, body.State)
			}
			relaytest.Equal(t, "the sent states", states, tc.states)
		})
	}
}

func TestMutesAreChecked(t *testing.T) {
	g := newGateway(t)
	r := g.create(rule.Rule{When: "values.t > 30"})
	for _, tc := range []struct {
		name    string
		acct    relay.AccountID
		request rule.MuteRequest
		field   string
	}{
		{"neither a rule nor a device", 1, rule.MuteRequest{For: "1h"}, "rule_id"},
		{"an unknown rule", 1, rule.MuteRequest{RuleID: "none", For: "1h"}, "rule_id"},
		{"a rule of another account", 2, rule.MuteRequest{RuleID: r, For: "1h"}, "rule_id"},
		{"an unknown device", 1, rule.MuteRequest{DeviceID: "none", For: "1h"}, "device_id"},
		{"no time", 1, rule.MuteRequest{RuleID: r}, "for"},
		{"a time that is not a duration", 1, rule.MuteRequest{RuleID: r, For: "soon"}, "for"},
		{"a negative time", 1, rule.MuteRequest{RuleID: r, For: "-1h"}, "for"},
		{"a time that is too long", 1, rule.MuteRequest{RuleID: r, For: "721h"}, "for"},
	} {
		_, err := g.rules.Mute(t.Context(), tc.acct, tc.request, "Ann")
		if relay.FieldsOf(err)[tc.field] == nil {
			t.Errorf("%s: %v, want a problem of %s", tc.name, err, tc.field)
		}
	}
	relaytest.Equal(t, "the kind of the error without a mute", relay.KindOf(g.rules.Unmute(t.Context(), 1, r, "")), relay.KindNotFound)
}

func TestARuleDoesNotEvaluateFramesOfAnotherAccount(t *testing.T) {
	g := newGateway(t)
	r := rule.Rule{Name: "Rule", Enabled: true, On: rule.OnReading, When: "values.t > 30", Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"a@example.com"}}}}
	_, _, err := g.rules.Create(t.Context(), 2, r)
	relaytest.NoError(t, err)
	g.ingest(temperature("a", 1, 31))
	g.wantAlarmsAndDeliveries("another account's frame", nil, 0)
}

func TestAReplayIsEvaluatedOnlyOnRequest(t *testing.T) {
	g := newGateway(t)
	g.ingest(temperature("a", 1, 31))
	g.create(rule.Rule{When: "values.t > 30"})
	replayed := temperature("a", 1, 31)
	replayed.SkipRules = true
	g.ingest(replayed)
	g.wantAlarmsAndDeliveries("a replay", nil, 0)
	replayed.SkipRules = false
	g.ingest(replayed)
	g.wantAlarmsAndDeliveries("a replay with rules", []string{"1–"}, 1)
}

func TestAChangeOfARuleTakesEffectAtOnce(t *testing.T) {
	g := newGateway(t)
	id := g.create(rule.Rule{When: "values.t > 30"})
	g.ingest(temperature("a", 1, 31))
	change := func(do func(*rule.Rule)) {
		_, _, err := g.rules.Change(t.Context(), 1, id, func(r *rule.Rule) error { do(r); return nil })
		relaytest.NoError(t, err)
	}
	g.clock.set(2)
	change(func(r *rule.Rule) { r.Name = "Another" })
	g.wantAlarmsAndDeliveries("after a new name", []string{"1–"}, 1)
	change(func(r *rule.Rule) { r.When = "values.t > 40" })
	g.wantAlarmsAndDeliveries("after a new condition", []string{"1–2"}, 1)
	g.ingest(temperature("a", 3, 35))
	g.wantAlarmsAndDeliveries("after a frame between the limits", []string{"1–2"}, 1)
	change(func(r *rule.Rule) { r.When, r.Devices.Name = "values.t > 10", "a*" })
	g.ingest(temperature("a", 4, 35), temperature("b", 4, 35))
	g.wantAlarmsAndDeliveries("after a new selection of devices", []string{"1–2", "4–"}, 2)
	change(func(r *rule.Rule) { r.Enabled = false })
	g.ingest(temperature("a", 5, 1), temperature("a", 6, 35))
	g.wantAlarmsAndDeliveries("after the rule was disabled", []string{"1–2", "4–4"}, 2)
	relaytest.NoError(t, g.rules.Delete(t.Context(), 1, id))
	g.ingest(temperature("a", 7, 35))
	g.wantAlarmsAndDeliveries("after the rule was deleted", []string{"1–2", "4–4"}, 2)
}

func TestARenamedDeviceIsSelectedByItsNewName(t *testing.T) {
	g := newGateway(t)
	g.create(rule.Rule{When: "values.t > 30", Devices: rule.Devices{Name: "Cold*"}})
	g.ingest(temperature("a", 1, 31))
	rename := func(name string) {
		_, err := g.records.Devices.ChangeDevice(t.Context(), 1, g.device("a"), func(d *iot.Device) error { d.Name = name; return nil })
		relaytest.NoError(t, err)
	}
	rename("Cold room")
	g.ingest(temperature("a", 2, 31))
	g.wantAlarmsAndDeliveries("after the device was renamed", []string{"2–"}, 1)
	rename("Warm room")
	g.ingest(temperature("a", 3, 20))
	g.wantAlarmsAndDeliveries("after the rule no longer selects the device", []string{"2–"}, 1)
}

func TestForwardingAndPrevious(t *testing.T) {
	g := newGateway(t)
	g.create(rule.Rule{})
	g.create(rule.Rule{When: "values.t - previous.t > 5"})
	g.ingest(temperature("a", 1, 20))
	frames := []iot.Arrival{temperature("a", 2, 22), temperature("a", 3, 30), temperature("a", 4, 31)}
	g.ingest(frames...)
	g.wantAlarmsAndDeliveries("after a rise of more than 5", []string{"3–4"}, 4+2)
	g.site.gateway().ingest(frames...)
	g.wantAlarmsAndDeliveries("after a crash", []string{"3–4"}, 4+2)
}

func TestEventsAreEvaluatedByTheirRules(t *testing.T) {
	g := newGateway(t)
	g.create(rule.Rule{On: rule.OnEvent, When: `event.type == "status" and event.battery < 20`})
	low, high, joined := 10.0, 90.0, temperature("a", 1, 50)
	joined.Frame.Kind, joined.Frame.Object = decoders.Join, nil
	status := func(sentAt float64, battery *float64) iot.Arrival {
		a := uplink("a", sentAt, nil)
		a.Frame.Kind, a.Frame.Battery = decoders.Status, battery
		return a
	}
	g.ingest(joined, temperature("a", 2, 50), status(3, &low), temperature("a", 4, 50), status(5, &high))
	g.wantAlarmsAndDeliveries("after a low and a high battery", []string{"3–5"}, 2)
}

func TestFailuresOfAnExpressionAreCounted(t *testing.T) {
	g := newGateway(t)
	id := g.create(rule.Rule{When: `values.t > 30`})
	g.ingest(uplink("a", 1, map[string]any{"t": "warm"}), temperature("a", 2, 31))
	g.wantAlarmsAndDeliveries("after the next frame", []string{"2–"}, 1)
	relaytest.Equal(t, "the failures in the statistics", g.rules.Stats().Failed, 1)
	g.rules.SaveFailures(t.Context())
	r, err := g.rules.Rule(t.Context(), 1, id)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the failures of the rule", r.Failures.Count, 1)
	if !strings.Contains(r.Failures.Last, "when: line 1, column") {
		t.Errorf("last failure = %q, want one with line and column", r.Failures.Last)
	}
}

func TestTheActionsOfAFrameAreLimited(t *testing.T) {
	g := newGateway(t)
	var urls []string
	for i := range 50 {
		urls = append(urls, fmt.Sprint("https://example.com/", i))
	}
	var ruleID string
	for range 3 {
		ruleID = g.create(rule.Rule{When: "values.t > 30", Actions: []rule.Action{{Action: rule.HTTPPost, Parameters: urls}}})
	}
	g.ingest(temperature("a", 1, 31))
	g.wantAlarmsAndDeliveries("after a frame that three rules match", []string{"1–", "1–", "1–"}, 100)
	g.ingest(temperature("a", 2, 31), temperature("a", 3, 30))
	g.wantAlarmsAndDeliveries("after the frame that clears the alarms", []string{"1–3", "1–3", "1–3"}, 200)
	relaytest.Equal(t, "the omitted actions in the statistics", g.rules.Stats().Omitted, 100)
	g.rules.SaveFailures(t.Context())
	r := relaytest.Must(g.rules.Rule(t.Context(), 1, ruleID))(t)
	if r.Failures.Count == 0 || !strings.Contains(r.Failures.Last, "more than 100 actions for one frame") {
		t.Errorf("failures of the rule = %+v, want omitted actions", r.Failures)
	}
}

func TestTheActionsOfAnAccountPerMinuteAreLimited(t *testing.T) {
	g := newGateway(t)
	var err error
	g.rules, err = rule.New(rule.Deps{Store: g.store.Store, Transactions: g.store, Fleet: g.iot, Deliveries: g.sender()}, rule.Options{Now: g.clock.Now, ActionsPerMinute: 3})
	relaytest.NoError(t, err)
	g.create(rule.Rule{When: "values.t > 30", Repeat: rule.Repeat{Always: true}})
	for i := range 6 {
		g.ingest(temperature("a", float64(i+1), 31))
	}
	g.wantAlarmsAndDeliveries("after six frames", []string{"1–"}, 3)
	g.ingest(temperature("a", 7, 1))
	g.wantAlarmsAndDeliveries("after the frame that clears the alarm", []string{"1–7"}, 3)
	g.clock.set(61)
	g.ingest(temperature("a", 60, 31))
	g.wantAlarmsAndDeliveries("in the next minute", []string{"1–7", "60–"}, 4)
	relaytest.Equal(t, "the omitted actions in the statistics", g.rules.Stats().Omitted, 4)
}

func TestAConditionThatHoldsForItsTimeRaisesAnAlarm(t *testing.T) {
	g := newGateway(t)
	g.create(rule.Rule{When: "values.t > 30", For: time.Minute})
	g.ingest(temperature("a", 1, 31), temperature("b", 1, 31))
	g.ingest(temperature("b", 30, 20))
	g.clock.set(61)
	relaytest.NoError(t, g.rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("within the grace period", nil, 0)
	g.clock.set(64)
	relaytest.NoError(t, g.rules.Tick(t.Context()), g.site.gateway().rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("after the grace period", []string{"61–"}, 1)
	for _, d := range g.deliveries() {
		if !strings.Contains(string(d.Request.Body), `"t":{"value":31`) {
			t.Errorf("the body lacks the reading: %s", d.Request.Body)
		}
	}
	g.ingest(temperature("a", 70, 1))
	g.wantAlarmsAndDeliveries("after a frame for which the condition does not hold", []string{"61–70"}, 2)
}

func TestSilence(t *testing.T) {
	g := newGateway(t)
	g.ingest(temperature("a", 0, 1), temperature("b", 0, 1))
	relaytest.NoError(t, g.records.Devices.CreateDevice(t.Context(), 1, iot.Device{ID: "never", Identifier: "never", CreatedAt: base()}, nil))
	g.create(rule.Rule{On: rule.OnSilent, SilentFor: time.Minute, Devices: rule.Devices{Name: "*"}})
	tick := func(now float64) {
		g.clock.set(now)
		relaytest.NoError(t, g.rules.Tick(t.Context()))
	}
	tick(5)
	tick(59)
	g.wantAlarmsAndDeliveries("before a minute of silence", nil, 0)
	g.ingest(temperature("b", 40, 1))
	tick(61)
	g.wantAlarmsAndDeliveries("a minute after the last frame or the creation", []string{"60–", "60–"}, 2)
	tick(75)
	tick(99)
	g.wantAlarmsAndDeliveries("before a minute of silence of b", []string{"60–", "60–"}, 2)
	g.ingest(temperature("c", 99, 1))
	tick(101)
	g.wantAlarmsAndDeliveries("after a minute of silence of b", []string{"60–", "60–", "100–"}, 3)
	txAck := uplink("a", 105, nil)
	txAck.Frame.Kind = decoders.TxAck
	g.ingest(txAck)
	g.wantAlarmsAndDeliveries("after a downlink was sent", []string{"60–", "60–", "100–"}, 3)
	g.ingest(temperature("a", 110, 1))
	g.wantAlarmsAndDeliveries("after a frame of a", []string{"60–", "60–110", "100–"}, 4)
	tick(160)
	g.wantAlarmsAndDeliveries("after silence of c, which is newer than the rule", []string{"60–", "60–110", "100–", "159–"}, 5)
	tick(171)
	g.wantAlarmsAndDeliveries("after silence of a again", []string{"60–", "60–110", "100–", "159–", "170–"}, 6)
}

func TestNoSilenceIsRaisedWhileFramesAreBehind(t *testing.T) {
	g := newGateway(t)
	framesBehind := true
	var err error
	g.rules, err = rule.New(rule.Deps{Store: g.store.Store, Transactions: g.store, Fleet: g.iot, Deliveries: g.sender(), Behind: func() bool { return framesBehind }}, rule.Options{Now: g.clock.Now})
	relaytest.NoError(t, err)
	g.ingest(temperature("a", 0, 1))
	g.create(rule.Rule{On: rule.OnSilent, SilentFor: time.Minute})
	for _, now := range []float64{5, 70} {
		g.clock.set(now)
		relaytest.NoError(t, g.rules.Tick(t.Context()))
	}
	g.wantAlarmsAndDeliveries("while frames are behind", nil, 0)
	framesBehind = false
	relaytest.NoError(t, g.rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("after frames have caught up", []string{"60–"}, 1)
}

func TestBatches(t *testing.T) {
	g := newGateway(t)
	g.create(rule.Rule{Batch: rule.Batch{Count: 3, Every: time.Minute}})
	for n := range 7 {
		g.ingest(temperature("a", float64(n), float64(n)))
		g.ingest(temperature("a", float64(n), float64(n))) // repeated as after a crash
	}
	g.wantAlarmsAndDeliveries("after two full batches", nil, 2)
	g.clock.set(30)
	relaytest.NoError(t, g.rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("while the third batch waits", nil, 2)
	g.clock.set(61)
	relaytest.NoError(t, g.rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("after a minute", nil, 3)
	for i, want := range []int{3, 3, 1} {
		if body := string(g.deliveries()[i].Request.Body); strings.Count(body, `"state":"forwarded"`) != want {
			t.Errorf("request %d: want %d frames: %s", i, want, body)
		}
	}
}

// A batch beyond the account's limit per minute is sent in a later minute.
func TestBatchesBeyondTheLimitOfAMinuteAreSentLater(t *testing.T) {
	g := newGateway(t)
	g.rules = relaytest.Must(rule.New(rule.Deps{Store: g.store.Store, Transactions: g.store, Fleet: g.iot, Deliveries: g.sender()}, rule.Options{Now: g.clock.Now, ActionsPerMinute: 1}))(t)
	g.create(rule.Rule{Batch: rule.Batch{Count: 2, Every: time.Second}})
	for n := range 4 {
		g.ingest(temperature("a", float64(n), float64(n)))
	}
	g.wantAlarmsAndDeliveries("in the first minute", nil, 1)
	g.clock.set(2)
	relaytest.NoError(t, g.rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("when the second batch is due", nil, 1)
	g.clock.set(61)
	relaytest.NoError(t, g.rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("in the next minute", nil, 2)
	for i, d := range g.deliveries() {
		if frames := strings.Count(string(d.Request.Body), `"state":"forwarded"`); frames != 2 {
			t.Errorf("request %d has %d frames, want 2: %s", i, frames, d.Request.Body)
		}
	}
	relaytest.Equal(t, "the omitted actions in the statistics", g.rules.Stats().Omitted, 0)
}

// Many due batches of an account at its limit do not delay the batch of another account.
func TestBatchesAtTheLimitDoNotDelayOtherAccounts(t *testing.T) {
	g := newGateway(t)
	g.rules = relaytest.Must(rule.New(rule.Deps{Store: g.store.Store, Transactions: g.store, Fleet: g.iot, Deliveries: g.sender()}, rule.Options{Now: g.clock.Now, ActionsPerMinute: 1}))(t)
	for range 110 {
		g.create(rule.Rule{Batch: rule.Batch{Count: 2, Every: time.Second}})
	}
	otherRule := rule.Rule{
		Name: "Other", Enabled: true, On: rule.OnReading, Batch: rule.Batch{Count: 2, Every: 2 * time.Second},
		Actions: []rule.Action{{Action: rule.HTTPPost, Parameters: []string{"https://example.com/"}}},
	}
	_, _, err := g.rules.Create(t.Context(), 2, otherRule)
	relaytest.NoError(t, err)
	otherFrame := temperature("b", 0, 1)
	otherFrame.Account = 2
	g.ingest(temperature("a", 0, 1), otherFrame)
	g.clock.set(3)
	relaytest.NoError(t, g.rules.Tick(t.Context()))
	g.wantAlarmsAndDeliveries("when all batches are due", nil, 2)
}

// TestACrashBetweenAnyTwoSteps makes each change of the store fail in turn, before or after its
// commit. It then processes the frames again with empty caches.
func TestACrashBetweenAnyTwoSteps(t *testing.T) {
	run := func(t *testing.T, failAt int, afterCommit bool) (changes int, crashed bool) {
		g := newGateway(t)
		g.create(rule.Rule{When: "values.t > 30", Repeat: rule.Repeat{Always: true}})
		g.create(rule.Rule{})
		g.create(rule.Rule{Batch: rule.Batch{Count: 2}})
		batches := [][]iot.Arrival{
			{temperature("a", 1, 31), temperature("b", 1, 10), temperature("a", 2, 32)}, {temperature("a", 3, 1), temperature("b", 3, 50)}, {temperature("a", 4, 40), temperature("b", 4, 1)},
		}
		g.store.failAt, g.store.failAfterCommit = failAt, afterCommit
		for i := 0; i < len(batches); i++ {
			if _, err := g.iot.Ingest(t.Context(), batches[i]); err != nil {
				changes, crashed = g.store.calls, true
				g = g.site.gateway()
				i = max(-1, i-2) // the checkpoint is two batches old
			}
		}
		relaytest.NoError(t, g.rules.Tick(t.Context()))
		// Three raised and two cleared alarms, one repeat, seven forwarded frames, three batches.
		g.wantAlarmsAndDeliveries("at the end", []string{"1–3", "3–4", "4–"}, 3+2+1+7+3)
		return max(changes, g.store.calls), crashed
	}
	for _, afterCommit := range []bool{false, true} {
		for failAt, crashed := 1, true; crashed; failAt++ {
			t.Run(fmt.Sprintf("change %d fails, after commit %v", failAt, afterCommit), func(t *testing.T) { _, crashed = run(t, failAt, afterCommit) })
			if failAt > 50 {
				t.Fatal("a change fails in each of 50 runs")
			}
		}
	}
}

// TestTwoGatewaysEvaluateTheSameFrames evaluates each frame on two gateways concurrently, on each
// engine.
func TestTwoGatewaysEvaluateTheSameFrames(t *testing.T) {
	t.Run("on SQLite", func(t *testing.T) {
		testTwoGateways(t, newSite(t, func(now func() time.Time) *recordstest.Records { return recordstest.OpenAt(t, now) }))
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		url := dbtest.Shared(t).NewDatabase(t)
		testTwoGateways(t, newSite(t, func(func() time.Time) *recordstest.Records { return recordstest.OpenURL(t, url) }))
	})
}

func testTwoGateways(t *testing.T, s *site) {
	a, b := s.gateway(), s.gateway()
	a.create(rule.Rule{When: "values.t > 30"})
	a.create(rule.Rule{})
	a.create(rule.Rule{Batch: rule.Batch{Count: 5}})
	const rounds, devices = 20, 10
	var want []string
	for n := range rounds {
		var frames []iot.Arrival
		for d := range devices {
			frames = append(frames, temperature(fmt.Sprint("dev", d), float64(n), float64(20+20*(n%2))))
		}
		var wg sync.WaitGroup
		for _, g := range []*gateway{a, b} {
			wg.Go(func() {
				if _, err := g.iot.Ingest(t.Context(), slices.Clone(frames)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n%2 == 1 {
			for range devices {
				want = append(want, fmt.Sprintf("%d–%d", n, n+1))
			}
		}
	}
	for i := range devices { // the last alarms are not cleared
		want[len(want)-1-i] = fmt.Sprintf("%d–", rounds-1)
	}
	const raised, cleared = devices * rounds / 2, devices * (rounds/2 - 1)
	a.wantAlarmsAndDeliveries("at the end", want, raised+cleared+rounds*devices+rounds*devices/5)
	ids := make(map[string]bool)
	for _, d := range s.dispatcher.deliveries {
		if ids[d.ID] {
			t.Errorf("%s was dispatched twice", d.ID)
		}
		ids[d.ID] = true
	}
}

func TestTry(t *testing.T) {
	g := newGateway(t)
	for n, celsius := range []float64{20, 31, 32, 20, 35} {
		g.ingest(temperature("a", float64(n), celsius))
	}
	id := g.create(rule.Rule{When: "values.t > 30"})
	results, err := g.rules.Try(t.Context(), 1, rule.Trial{RuleID: id, DeviceID: g.device("a"), Last: 4})
	relaytest.NoError(t, err)
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%g %s %v %d", r.Time.Sub(base()).Seconds(), r.State, r.Matched, len(r.Requests)))
	}
	relaytest.Equal(t, "the trial", got, []string{"1 raised true 1", "2  true 0", "3 cleared false 1", "4 raised true 1"})
	g.wantAlarmsAndDeliveries("after the trial", nil, 0)
	if _, err := g.rules.Try(t.Context(), 1, rule.Trial{RuleID: "none", DeviceID: g.device("a")}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("a trial of an unknown rule: %v, want not found", err)
	}
	for _, count := range []int{-1, 101} {
		_, err := g.rules.Try(t.Context(), 1, rule.Trial{RuleID: id, DeviceID: g.device("a"), Last: count})
		relaytest.Equal(t, fmt.Sprintf("the kind of the error for %d frames", count), relay.KindOf(err), relay.KindInvalid)
	}
	silent := rule.Rule{Name: "x", On: rule.OnSilent, SilentFor: time.Minute, Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"a@example.com"}}}}
	g.clock.set(100)
	results, err = g.rules.Try(t.Context(), 1, rule.Trial{Rule: silent, DeviceID: g.device("a")})
	relaytest.NoError(t, err)
	if len(results) != 6 {
		t.Fatalf("%d results of the trial of silence, want 6", len(results))
	}
	relaytest.Equal(t, "the state of the last result", results[5].State, rule.Raised)
	relaytest.Equal(t, "the time of the last result", results[5].Time, base().Add(64*time.Second))
	g.wantAlarmsAndDeliveries("after the trial of silence", nil, 0)
}

func TestWarningsAndLimits(t *testing.T) {
	g := newGateway(t)
	r := rule.Rule{Name: "x", On: rule.OnReading, When: "values.t > 30 and values.temprature > 3", Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"a@example.com"}}}}
	created, warnings, err := g.rules.Create(t.Context(), 1, r)
	relaytest.NoError(t, err)
	if len(warnings) != 1 || !strings.Contains(warnings[0], `"temprature"`) {
		t.Errorf("the warnings are %q, want one about temprature", warnings)
	}
	if created.ID == "" {
		t.Error("the rule has no id")
	}
	unknown := r
	unknown.When, unknown.Devices.DecoderID = "", "none"
	_, warnings, err = g.rules.Create(t.Context(), 1, unknown)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the warnings of a rule for an unknown decoder", warnings, []string{`There is no decoder "none": the rule has no devices.`})
	g.ingest(temperature("a", 1, 20))
	unknown.Devices = rule.Devices{LocationID: "nowhere", IDs: []string{g.device("a"), "none"}}
	_, warnings, err = g.rules.Create(t.Context(), 1, unknown)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the warnings of a rule for an unknown location and device", warnings, []string{
		`There is no location "nowhere": the rule has no devices.`, `There is no device "none".`,
	})
	limited, err := rule.New(rule.Deps{Store: g.store.Store, Transactions: g.store, Fleet: g.iot, Deliveries: g.sender(), CheckURL: func(string) error { return fmt.Errorf("a private address") }}, rule.Options{MaxRules: 1})
	relaytest.NoError(t, err)
	if _, _, err := limited.Create(t.Context(), 1, r); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("a second rule: %v, want kind invalid", err)
	}
	r.Actions = []rule.Action{{Action: rule.HTTPPost, Parameters: []string{"http://10.0.0.1/"}}}
	if _, _, err := limited.Create(t.Context(), 1, r); relay.FieldsOf(err)["actions[0].parameters[0]"] == nil {
		t.Errorf("a private address: %v, want a problem of its parameter", err)
	}
	if _, _, err := g.rules.Alarms(t.Context(), 1, rule.AlarmFilter{State: "open"}); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("a filter by an unknown state: %v, want kind invalid", err)
	}
}

// acknowledgement has the fields of an alarm that Acknowledge sets.
type acknowledgement struct {
	By, Note string
	At       time.Time
}

func acknowledgementOf(a rule.Alarm) acknowledgement {
	return acknowledgement{a.AcknowledgedBy, a.Note, a.AcknowledgedAt}
}

func TestAnAlarmIsAcknowledged(t *testing.T) {
	g := newGateway(t)
	g.create(rule.Rule{When: "values.t > 30"})
	g.ingest(temperature("a", 1, 31))
	alarms, _, err := g.rules.Alarms(t.Context(), 1, rule.AlarmFilter{})
	relaytest.NoError(t, err)
	g.clock.set(5)
	a, err := g.rules.Acknowledge(t.Context(), 1, alarms[0].ID, "Ann", "seen")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the acknowledgement", acknowledgementOf(a), acknowledgement{"Ann", "seen", base().Add(5 * time.Second)})
	g.clock.set(9)
	a, err = g.rules.Acknowledge(t.Context(), 1, alarms[0].ID, "Bob", "repaired")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the note after the second acknowledgement", a.Note, "repaired")
	relaytest.Equal(t, "the time of the first acknowledgement", a.AcknowledgedAt, base().Add(5*time.Second))
	if _, err := g.rules.Acknowledge(t.Context(), 2, alarms[0].ID, "Eve", ""); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("an alarm of another account: %v, want not found", err)
	}
	if _, err := g.rules.Acknowledge(t.Context(), 1, alarms[0].ID, "Ann", strings.Repeat("x", 5000)); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("a note that is too long: %v, want kind invalid", err)
	}
}
