package rule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// atSecond returns the time s seconds after the start of the tests.
func atSecond(s float64) time.Time {
	return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

// frameAt returns an uplink s seconds after the start of the tests. readings are keys and values.
func frameAt(s float64, readings ...any) *ruleFrame {
	f := &ruleFrame{
		record: fmt.Sprint("rec", s), device: &iot.Device{ID: "d1", Name: "Cold room 1"}, frameAt: atSecond(s), heardAt: atSecond(s), trigger: OnReading, fromDevice: true,
	}
	for i := 0; i < len(readings); i += 2 {
		p := iot.Point{Key: readings[i].(string), Time: atSecond(s)}
		if text, ok := readings[i+1].(string); ok {
			p.Text, p.IsText = text, true
		} else {
			p.Value = float64(readings[i+1].(int))
		}
		f.points = append(f.points, p)
	}
	f.prepare(time.UTC)
	return f
}

func compileTestRule(t *testing.T, r Rule) *Program {
	t.Helper()
	r.ID, r.Name = "r1", "Rule"
	if r.On == "" {
		r.On = OnReading
	}
	r.Actions = []Action{{Action: HTTPPost, Parameters: []string{"https://example.com/"}}}
	p, err := Compile(&r)
	relaytest.NoError(t, err)
	return p
}

// TestStep evaluates the frames of each case in order. want is the expected verdict, formatted by
// formatVerdict.
func TestStep(t *testing.T) {
	hot := Rule{When: "values.t > 30"}
	hysteresis := Rule{When: "values.t > 30", Clear: "values.t < 28"}
	lasting := Rule{When: "values.t > 30", For: time.Minute}
	type frame struct {
		frame *ruleFrame
		want  string
	}
	for name, tc := range map[string]struct {
		rule   Rule
		frames []frame
	}{
		"an alarm is raised once and cleared once": {hot, []frame{
			{frameAt(1, "t", 20), ""}, {frameAt(2, "t", 31), "raised"}, {frameAt(3, "t", 32), ""}, {frameAt(4, "t", 30), "cleared"},
			{frameAt(5, "t", 29), ""}, {frameAt(6, "t", 40), "raised"},
		}},
		"a value between when and clear changes nothing": {hysteresis, []frame{
			{frameAt(1, "t", 29), ""}, {frameAt(2, "t", 31), "raised"}, {frameAt(3, "t", 29), ""}, {frameAt(4, "t", 27), "cleared"}, {frameAt(5, "t", 29), ""},
		}},
		"a frame without the value changes nothing": {hot, []frame{
			{frameAt(1, "h", 1), ""}, {frameAt(2, "t", 31), "raised"}, {frameAt(3, "h", 1), ""}, {frameAt(4), ""}, {frameAt(5, "t", 3), "cleared"},
		}},
		"a frame that is not later is not evaluated": {hot, []frame{
			{frameAt(5, "t", 31), "raised"}, {frameAt(4, "t", 20), ""}, {frameAt(5, "t", 20), ""}, {frameAt(6, "t", 20), "cleared"}, {frameAt(6, "t", 31), ""},
		}},
		"the condition must hold for a minute": {lasting, []frame{
			{frameAt(0, "t", 31), "since"}, {frameAt(30, "t", 31), ""}, {frameAt(59, "t", 31), ""}, {frameAt(60, "t", 31), "raised"}, {frameAt(70, "t", 1), "cleared"},
		}},
		"the minute starts again after the condition was false": {lasting, []frame{
			{frameAt(0, "t", 31), "since"}, {frameAt(30, "t", 1), "broken"}, {frameAt(40, "t", 31), "since"}, {frameAt(70, "t", 31), ""}, {frameAt(100, "t", 31), "raised"},
		}},
		"a frame without the value does not restart the minute": {lasting, []frame{
			{frameAt(0, "t", 31), "since"}, {frameAt(30, "h", 1), ""}, {frameAt(61, "t", 31), "raised"},
		}},
		"a repeat with each frame": {Rule{When: "values.t > 30", Clear: "values.t < 28", Repeat: Repeat{Always: true}}, []frame{
			{frameAt(1, "t", 31), "raised"}, {frameAt(2, "t", 31), "repeat 1"}, {frameAt(3, "t", 29), ""}, {frameAt(4, "t", 32), "repeat 2"}, {frameAt(5, "t", 1), "cleared"},
			{frameAt(6, "t", 31), "raised"},
		}},
		"a repeat every ten seconds at most": {Rule{When: "values.t > 30", Repeat: Repeat{Every: 10 * time.Second}}, []frame{
			{frameAt(1, "t", 31), "raised"}, {frameAt(5, "t", 31), ""}, {frameAt(11, "t", 31), "repeat 1"}, {frameAt(12, "t", 31), ""}, {frameAt(30, "t", 31), "repeat 2"},
		}},
		"an expression that fails changes nothing": {Rule{When: "values.t > 30 and values.door > 3"}, []frame{
			{frameAt(1, "t", 31, "door", "open"), "fault"}, {frameAt(2, "t", 31, "door", 4), "raised"}, {frameAt(3, "t", 31, "door", "open"), "fault"}, {frameAt(4, "t", 1, "door", "x"), "cleared"},
		}},
		"silence ends with a frame": {Rule{On: OnSilent, SilentFor: time.Minute}, []frame{{frameAt(1, "t", 31), ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, st := compileTestRule(t, tc.rule), PairState{Pair: Pair{"r1", "d1"}}
			for i, f := range tc.frames {
				oldState := st
				v := p.step(1, &st, f.frame)
				if got := formatVerdict(v, &oldState, &st); got != f.want {
					t.Fatalf("frame %d at %s: verdict %q, want %q; %s", i, f.frame.frameAt.Format(time.TimeOnly), got, f.want, v.Reason)
				}
				if v.changed == (oldState == st) {
					t.Errorf("frame %d: changed = %v, but the state differs by:\n%s", i, v.changed, relaytest.Diff(st, oldState))
				}
				if v.Reason == "" {
					t.Errorf("frame %d: the verdict has no reason", i)
				}
			}
		})
	}
}

// formatVerdict formats a verdict in one or two words.
func formatVerdict(v verdict, oldState, newState *PairState) string {
	switch {
	case v.err != nil:
		return "fault"
	case v.Repeat:
		return fmt.Sprint("repeat ", newState.Repeats)
	case v.State != "":
		return string(v.State)
	case oldState.Since.IsZero() && !newState.Since.IsZero():
		return "since"
	case !oldState.Since.IsZero() && newState.Since.IsZero():
		return "broken"
	}
	return ""
}

// After a crash, the frames are evaluated again with the state that resulted from them.
func TestRepeatedFramesChangeNothing(t *testing.T) {
	p, st := compileTestRule(t, Rule{When: "values.t > 30"}), PairState{Pair: Pair{"r1", "d1"}}
	frames := []*ruleFrame{frameAt(1, "t", 31), frameAt(2, "t", 1), frameAt(3, "t", 31), frameAt(4, "t", 32), frameAt(5, "t", 33)}
	for _, f := range frames {
		p.step(1, &st, f)
	}
	oldState := st
	for _, f := range frames {
		relaytest.Equal(t, "the effect of "+f.record, effectOf(p.step(1, &st, f)), effect{})
	}
	relaytest.Equal(t, "the state", st, oldState)
}

// effect is the part of a verdict that the tests compare.
type effect struct {
	State   State
	Repeat  bool
	Changed bool
}

func effectOf(v verdict) effect { return effect{v.State, v.Repeat, v.changed} }

// pairSummary is the part of a state that the following tests compare.
type pairSummary struct {
	Alarm    bool
	RaisedAt time.Time
	Due      time.Time
	Repeats  int
}

func summaryOf(st *PairState) pairSummary {
	return pairSummary{st.AlarmID != "", st.RaisedAt, st.Due, st.Repeats}
}

func TestTheIDOfAnAlarmDerivesFromRuleDeviceAndFrame(t *testing.T) {
	p := compileTestRule(t, Rule{When: "values.t > 30"})
	raise := func(device string, f *ruleFrame) string {
		st := PairState{Pair: Pair{"r1", device}}
		p.step(1, &st, f)
		return st.AlarmID
	}
	a := raise("d1", frameAt(1, "t", 31))
	if a == "" {
		t.Error("the alarm has no id")
	}
	relaytest.Equal(t, "the id, raised again by the same frame", raise("d1", frameAt(1, "t", 31)), a)
	if raise("d2", frameAt(1, "t", 31)) == a {
		t.Errorf("the alarm of another device also has the id %q", a)
	}
	if raise("d1", frameAt(2, "t", 31)) == a {
		t.Errorf("the alarm of a later frame also has the id %q", a)
	}
}

func TestAConditionThatHoldsLongEnoughRaisesWithoutAFrame(t *testing.T) {
	program, state := compileTestRule(t, Rule{When: "values.t > 30", For: time.Minute}), PairState{Pair: Pair{"r1", "d1"}}
	program.step(1, &state, frameAt(0, "t", 31))
	if state.StartOccurrence == nil {
		t.Fatal("the state lacks the frame at which the condition began to hold")
	}
	relaytest.Equal(t, "the rule of the stored frame", state.StartOccurrence.Rule, nil)
	relaytest.Equal(t, "the reading of the stored frame", state.StartOccurrence.Readings["t"].Value, 31)
	relaytest.Equal(t, "the state after the first frame", summaryOf(&state), pairSummary{Due: atSecond(62)})

	early, late := state, state
	relaytest.Equal(t, "the effect after 59 s", program.evaluateDue(1, &early, atSecond(59)).State, "")
	relaytest.Equal(t, "the state after 59 s", summaryOf(&early), pairSummary{Due: atSecond(62)})
	relaytest.Equal(t, "the effect after 62 s", program.evaluateDue(1, &late, atSecond(62)).State, Raised)
	relaytest.Equal(t, "the state after 62 s", summaryOf(&late), pairSummary{Alarm: true, RaisedAt: atSecond(60)})
	relaytest.Equal(t, "the effect of a late frame for which the condition does not hold", program.step(1, &late, frameAt(45, "t", 1)).State, Cleared)

	notDue := PairState{Pair: Pair{"r1", "d1"}, Due: atSecond(1)}
	relaytest.Equal(t, "the effect of a state with nothing to evaluate", program.evaluateDue(1, &notDue, atSecond(62)).State, "")
	relaytest.Equal(t, "the due time of a state with nothing to evaluate", notDue.Due, time.Time{})
}

func TestSilence(t *testing.T) {
	p, st := compileTestRule(t, Rule{On: OnSilent, SilentFor: time.Minute, Repeat: Repeat{Every: time.Hour}}), PairState{Pair: Pair{"r1", "d1"}}
	evaluateAt := func(heardAt, nowAt float64) effect {
		return effectOf(p.evaluateSilence(1, &st, atSecond(heardAt), atSecond(heardAt), atSecond(nowAt)))
	}
	raised, cleared := effect{State: Raised, Changed: true}, effect{State: Cleared, Changed: true}
	relaytest.Equal(t, "59 s of silence", evaluateAt(0, 59), effect{})
	relaytest.Equal(t, "65 s of silence", evaluateAt(0, 65), raised)
	relaytest.Equal(t, "the state after 65 s", summaryOf(&st), pairSummary{Alarm: true, RaisedAt: atSecond(60), Due: atSecond(3665)})
	firstID := st.AlarmID
	relaytest.Equal(t, "70 s of silence", evaluateAt(0, 70), effect{})
	relaytest.Equal(t, "an hour later", effectOf(p.evaluateDue(1, &st, atSecond(3665))), effect{State: Raised, Repeat: true, Changed: true})
	relaytest.Equal(t, "the state an hour later", summaryOf(&st), pairSummary{Alarm: true, RaisedAt: atSecond(60), Due: atSecond(7265), Repeats: 1})

	v := p.step(1, &st, frameAt(4000, "t", 1))
	relaytest.Equal(t, "a frame", effectOf(v), cleared)
	relaytest.Equal(t, "the alarm that the frame cleared", v.oldState.AlarmID, firstID)
	relaytest.Equal(t, "the state after the frame", summaryOf(&st), pairSummary{})
	relaytest.Equal(t, "50 s of silence according to a cache without the frame", evaluateAt(0, 4050), effect{})
	// The time of the frame in the cache may be less exact.
	relaytest.Equal(t, "61 s of silence after the frame", evaluateAt(3999.9, 4061), raised)
	relaytest.Equal(t, "the time of the second alarm", st.RaisedAt, atSecond(4060))
	if st.AlarmID == firstID {
		t.Errorf("the second alarm has the id of the first, %q", firstID)
	}
	relaytest.Equal(t, "a frame at the same time", evaluateAt(4050, 4062), cleared)
}

func TestCompile(t *testing.T) {
	validRule := func() Rule {
		return Rule{ID: "r1", Name: "Hot", On: OnReading, When: "values.t > 30", Actions: []Action{{Action: Email, Parameters: []string{"a@example.com"}}}}
	}
	for name, tc := range map[string]struct {
		change func(*Rule)
		want   string // "field: text", or empty if the rule is valid
	}{
		"a valid rule":                 {func(*Rule) {}, ""},
		"no name":                      {func(r *Rule) { r.Name = "" }, "name: required"},
		"a long name":                  {func(r *Rule) { r.Name = strings.Repeat("x", 256) }, "name: 255"},
		"an unknown trigger":           {func(r *Rule) { r.On = "never" }, "on: must be reading, silent or event"},
		"an invalid condition":         {func(r *Rule) { r.When = "values.t >" }, "when: line 1, column"},
		"an invalid clear":             {func(r *Rule) { r.Clear = "values.t > 1 and\n nothing == 2" }, "clear: line 2, column 2"},
		"a clear without when":         {func(r *Rule) { r.When, r.Clear = "", "values.t < 1" }, "clear: needs a when"},
		"for without when":             {func(r *Rule) { r.When, r.For = "", time.Minute }, "for: needs a when"},
		"a for that is too long":       {func(r *Rule) { r.For = 1000 * 24 * time.Hour }, "for: 366 days"},
		"repeat without when":          {func(r *Rule) { r.When, r.Repeat.Always = "", true }, "repeat: needs a when"},
		"repeat too often":             {func(r *Rule) { r.Repeat.Every = time.Millisecond }, "repeat: 1 second"},
		"silent_for on reading":        {func(r *Rule) { r.SilentFor = time.Hour }, "silent_for: rules on silent"},
		"silence of a second":          {func(r *Rule) { r.On, r.When, r.SilentFor = OnSilent, "", time.Second }, "silent_for: between 1 minute"},
		"silence with a condition":     {func(r *Rule) { r.On, r.SilentFor = OnSilent, time.Hour }, "when: must not have a when"},
		"silence that repeats always":  {func(r *Rule) { r.On, r.When, r.SilentFor, r.Repeat.Always = OnSilent, "", time.Hour, true }, "repeat: never or a duration"},
		"a batch with when":            {func(r *Rule) { r.Batch.Count = 3 }, "batch: without a when"},
		"a batch with too many frames": {func(r *Rule) { r.When, r.Batch.Count = "", 1001 }, "batch.count: 1000"},
		"a batch over too long a time": {func(r *Rule) { r.When, r.Batch.Every = "", 48*time.Hour }, "batch.every: 24 hours"},
		"no action":                    {func(r *Rule) { r.Actions = nil }, "actions: between 1 and 10"},
		"too many devices":             {func(r *Rule) { r.Devices.IDs = make([]string, 10_001) }, "devices.ids: 10000"},
		"an invalid action":            {func(r *Rule) { r.Actions[0].Action = "fax" }, "actions[0].action: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := validRule()
			tc.change(&r)
			_, err := Compile(&r)
			field, text, _ := strings.Cut(tc.want, ": ")
			problems := relay.FieldsOf(err)
			if tc.want == "" && err == nil {
				return
			}
			if relay.KindOf(err) != relay.KindInvalid || len(problems[field]) == 0 || !strings.Contains(problems[field][0], text) {
				t.Errorf("error %v with fields %v, want %s", err, problems, tc.want)
			}
		})
	}
}

func TestSelections(t *testing.T) {
	d := &iot.Device{ID: "d1", Name: "Cold room 12", DecoderID: "dec", LocationID: "yard"}
	for name, tc := range map[string]struct {
		devices Devices
		want    bool
	}{
		"no field":                         {Devices{}, true},
		"its id":                           {Devices{IDs: []string{"d0", "d1"}}, true},
		"other ids":                        {Devices{IDs: []string{"d0"}}, false},
		"its decoder":                      {Devices{DecoderID: "dec"}, true},
		"another decoder":                  {Devices{DecoderID: "x"}, false},
		"its location and decoder":         {Devices{LocationID: "yard", DecoderID: "dec"}, true},
		"its decoder and another location": {Devices{LocationID: "x", DecoderID: "dec"}, false},
		"a prefix":                         {Devices{Name: "Cold*"}, true},
		"a suffix":                         {Devices{Name: "*12"}, true},
		"parts in order":                   {Devices{Name: "C*room*1*"}, true},
		"parts out of order":               {Devices{Name: "*room*Cold*"}, false},
		"the complete name":                {Devices{Name: "Cold room 12"}, true},
		"a part without a star":            {Devices{Name: "Cold"}, false},
		"an overlapping prefix and suffix": {Devices{Name: "Cold room 12*2"}, false},
		"two stars":                        {Devices{Name: "**"}, true},
	} {
		s := newSelection(tc.devices)
		relaytest.Equal(t, "the selection by "+name, s.includes(d), tc.want)
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("a*b*c", "axbxc")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		matches := func(pattern, text string) bool { p := newPattern(pattern); return p.matches(text) }
		got := matches(pattern, text)
		if !strings.Contains(pattern, "*") && got != (pattern == text) {
			t.Errorf("the pattern %q without a star matches %q: %v", pattern, text, got)
		}
		if !strings.Contains(pattern, "*") && !matches(pattern+"*", pattern+text) {
			t.Errorf("the prefix %q does not match %q", pattern, pattern+text)
		}
		if inner := "x" + strings.ReplaceAll(text, "*", "yy") + "z"; !matches("*"+text+"*", inner) {
			t.Errorf("the pattern %q does not match %q", "*"+text+"*", inner)
		}
	})
}

func TestPreviousReadingsFollowTheFrames(t *testing.T) {
	frames := []*ruleFrame{frameAt(1, "t", 1), frameAt(2, "h", 5), frameAt(3, "t", 3)}
	setPrevious(frames, []iot.Point{{Key: "t", Value: 9, Time: atSecond(0)}}, time.UTC)
	for i, want := range []map[string]any{{"t": 9.0}, {"t": 1.0}, {"t": 1.0, "h": 5.0}} {
		relaytest.Equal(t, fmt.Sprint("the previous readings of frame ", i), frames[i].conditionSubject.Previous, want)
	}
}

// Two frames of a network that reports whole seconds may have the same time.
func TestFramesWithTheSameTimeAreBothEvaluated(t *testing.T) {
	p, st := compileTestRule(t, Rule{On: OnReading, When: "values.t > 30"}), PairState{Pair: Pair{"r1", "d1"}}
	frame := func(record string, value int) *ruleFrame {
		f := frameAt(10, "t", value)
		f.record = record
		return f
	}
	relaytest.Equal(t, "the first frame", effectOf(p.step(1, &st, frame("n-u9", 31))), effect{State: Raised, Changed: true})
	repeated := p.step(1, &st, frame("n-u9", 31))
	relaytest.Equal(t, "the first frame, processed again", effectOf(repeated), effect{})
	relaytest.Equal(t, "whether the first frame, processed again, matches", repeated.matched, false)
	relaytest.Equal(t, "the second frame", effectOf(p.step(1, &st, frame("n-u10", 20))), effect{State: Cleared, Changed: true})
	relaytest.Equal(t, "the first frame, processed a third time", effectOf(p.step(1, &st, frame("n-u9", 31))), effect{})
}

func TestTheParametersOfAllActionsAreLimited(t *testing.T) {
	r := Rule{ID: "r1", Name: "Many", On: OnReading, When: "values.t > 30"}
	for range 3 {
		a := Action{Action: Email}
		for i := range 34 {
			a.Parameters = append(a.Parameters, fmt.Sprintf("a%d@example.com", i))
		}
		r.Actions = append(r.Actions, a)
	}
	if _, err := Compile(&r); len(relay.FieldsOf(err)["actions"]) != 1 {
		t.Errorf("102 parameters: error %v, want a problem of actions", err)
	}
	r.Actions[0].Parameters = r.Actions[0].Parameters[:32]
	if _, err := Compile(&r); err != nil {
		t.Errorf("100 parameters: %v, want no error", err)
	}
}
