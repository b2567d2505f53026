package rule

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// second is a time of the tests.
func second(s float64) time.Time {
	return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

// frameAt is a frame with the reading t; NaN stands for none.
func frameAt(s float64, readings ...any) *ruleFrame {
	g := &ruleFrame{
		record: fmt.Sprint("rec", s), device: &iot.Device{ID: "d1", Name: "Cold room 1"}, at: second(s), heard: second(s), trigger: OnReading, sent: true,
	}
	for i := 0; i < len(readings); i += 2 {
		p := iot.Point{Key: readings[i].(string), Time: second(s)}
		if text, ok := readings[i+1].(string); ok {
			p.Text, p.IsText = text, true
		} else {
			p.Value = float64(readings[i+1].(int))
		}
		g.points = append(g.points, p)
	}
	g.prepare(time.UTC)
	return g
}

func compiled(t *testing.T, r Rule) *Program {
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

// TestStep evaluates frames one after another: what is written behind each is what
// happens at it.
func TestStep(t *testing.T) {
	hot := Rule{When: "values.t > 30"}
	hysteresis := Rule{When: "values.t > 30", Clear: "values.t < 28"}
	lasting := Rule{When: "values.t > 30", For: time.Minute}
	type frame struct {
		g    *ruleFrame
		want string
	}
	for name, tc := range map[string]struct {
		rule   Rule
		frames []frame
	}{
		"raised once, cleared once": {hot, []frame{
			{frameAt(1, "t", 20), ""}, {frameAt(2, "t", 31), "raised"}, {frameAt(3, "t", 32), ""}, {frameAt(4, "t", 30), "cleared"},
			{frameAt(5, "t", 29), ""}, {frameAt(6, "t", 40), "raised"},
		}},
		"between when and clear nothing happens": {hysteresis, []frame{
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
		"it begins anew when the condition breaks": {lasting, []frame{
			{frameAt(0, "t", 31), "since"}, {frameAt(30, "t", 1), "broken"}, {frameAt(40, "t", 31), "since"}, {frameAt(70, "t", 31), ""}, {frameAt(100, "t", 31), "raised"},
		}},
		"a frame without the value does not break it": {lasting, []frame{
			{frameAt(0, "t", 31), "since"}, {frameAt(30, "h", 1), ""}, {frameAt(61, "t", 31), "raised"},
		}},
		"with each frame": {Rule{When: "values.t > 30", Clear: "values.t < 28", Repeat: Repeat{Always: true}}, []frame{
			{frameAt(1, "t", 31), "raised"}, {frameAt(2, "t", 31), "repeat 1"}, {frameAt(3, "t", 29), ""}, {frameAt(4, "t", 32), "repeat 2"}, {frameAt(5, "t", 1), "cleared"},
			{frameAt(6, "t", 31), "raised"},
		}},
		"at most every ten seconds": {Rule{When: "values.t > 30", Repeat: Repeat{Every: 10 * time.Second}}, []frame{
			{frameAt(1, "t", 31), "raised"}, {frameAt(5, "t", 31), ""}, {frameAt(11, "t", 31), "repeat 1"}, {frameAt(12, "t", 31), ""}, {frameAt(30, "t", 31), "repeat 2"},
		}},
		"an expression that fails changes nothing": {Rule{When: "values.t > 30 and values.door > 3"}, []frame{
			{frameAt(1, "t", 31, "door", "open"), "fault"}, {frameAt(2, "t", 31, "door", 4), "raised"}, {frameAt(3, "t", 31, "door", "open"), "fault"}, {frameAt(4, "t", 1, "door", "x"), "cleared"},
		}},
		"silence ends with a frame": {Rule{On: OnSilent, SilentFor: time.Minute}, []frame{{frameAt(1, "t", 31), ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, st := compiled(t, tc.rule), PairState{Pair: Pair{"r1", "d1"}}
			for i, f := range tc.frames {
				was := st
				v := p.step(1, &st, f.g)
				if got := short(v, &was, &st); got != f.want {
					t.Fatalf("frame %d at %s: %q, want %q; %s", i, f.g.at.Format(time.TimeOnly), got, f.want, v.Why)
				}
				if v.changed == (was == st) {
					t.Errorf("frame %d: changed %v: %+v after %+v", i, v.changed, st, was)
				}
				if v.Why == "" {
					t.Errorf("frame %d: it does not say why", i)
				}
			}
		})
	}
}

// short writes a verdict in one word.
func short(v verdict, was, is *PairState) string {
	switch {
	case v.err != nil:
		return "fault"
	case v.Repeat:
		return fmt.Sprint("repeat ", is.Repeats)
	case v.State != "":
		return string(v.State)
	case was.Since.IsZero() && !is.Since.IsZero():
		return "since"
	case !was.Since.IsZero() && is.Since.IsZero():
		return "broken"
	}
	return ""
}

// The same frames again, from a state that has seen them, as after a crash.
func TestFramesThatComeAgainChangeNothing(t *testing.T) {
	p, st := compiled(t, Rule{When: "values.t > 30"}), PairState{Pair: Pair{"r1", "d1"}}
	frames := []*ruleFrame{frameAt(1, "t", 31), frameAt(2, "t", 1), frameAt(3, "t", 31), frameAt(4, "t", 32), frameAt(5, "t", 33)}
	for _, g := range frames {
		p.step(1, &st, g)
	}
	was := st
	for _, g := range frames {
		if v := p.step(1, &st, g); v.State != "" || v.changed {
			t.Errorf("%s: %+v", g.record, v)
		}
	}
	if st != was {
		t.Errorf("%+v, was %+v", st, was)
	}
}

func TestAnAlarmIsNamedAfterWhatRaisedIt(t *testing.T) {
	p := compiled(t, Rule{When: "values.t > 30"})
	raise := func(device string, g *ruleFrame) string {
		st := PairState{Pair: Pair{"r1", device}}
		p.step(1, &st, g)
		return st.AlarmID
	}
	a := raise("d1", frameAt(1, "t", 31))
	if again := raise("d1", frameAt(1, "t", 31)); a == "" || a != again {
		t.Errorf("%q and %q", a, again)
	}
	if other, later := raise("d2", frameAt(1, "t", 31)), raise("d1", frameAt(2, "t", 31)); other == a || later == a {
		t.Errorf("%q, %q, %q", a, other, later)
	}
}

func TestPass(t *testing.T) {
	lasting, began := compiled(t, Rule{When: "values.t > 30", For: time.Minute}), PairState{Pair: Pair{"r1", "d1"}}
	lasting.step(1, &began, frameAt(0, "t", 31))
	if began.Began == nil || began.Began.Rule != nil || began.Began.Readings["t"].Value != 31 || !began.Due.Equal(second(62)) {
		t.Fatalf("%+v", began)
	}
	early, late := began, began
	if v := lasting.evaluateDue(1, &early, second(59)); v.State != "" || !early.Due.Equal(second(62)) {
		t.Errorf("early: %+v, %+v", v, early)
	}
	if v := lasting.evaluateDue(1, &late, second(62)); v.State != Raised || !late.RaisedAt.Equal(second(60)) || late.AlarmID == "" || !late.Due.IsZero() {
		t.Errorf("%+v, %+v", v, late)
	}
	if v := lasting.step(1, &late, frameAt(45, "t", 1)); v.State != Cleared { // it came late: the condition had not held for a minute
		t.Errorf("%+v", v)
	}
	over := PairState{Pair: Pair{"r1", "d1"}, Due: second(1)}
	if v := lasting.evaluateDue(1, &over, second(62)); v.State != "" || !over.Due.IsZero() {
		t.Errorf("nothing is due: %+v, %+v", v, over)
	}
}

func TestSilence(t *testing.T) {
	p, st := compiled(t, Rule{On: OnSilent, SilentFor: time.Minute, Repeat: Repeat{Every: time.Hour}}), PairState{Pair: Pair{"r1", "d1"}}
	silence := func(heard, now float64) verdict { return p.silence(1, &st, second(heard), second(heard), second(now)) }
	if v := silence(0, 59); v.changed {
		t.Errorf("early: %+v", v)
	}
	if v := silence(0, 65); v.State != Raised || !st.RaisedAt.Equal(second(60)) || !st.Due.Equal(second(3665)) {
		t.Errorf("%+v, %+v", v, st)
	}
	first := st.AlarmID
	if v := silence(0, 70); v.changed {
		t.Errorf("raised twice: %+v", v)
	}
	if v := p.evaluateDue(1, &st, second(3665)); !v.Repeat || st.Repeats != 1 || !st.Due.Equal(second(7265)) {
		t.Errorf("repeat: %+v, %+v", v, st)
	}
	if v := p.step(1, &st, frameAt(4000, "t", 1)); v.State != Cleared || v.ended.AlarmID != first || st.AlarmID != "" || !st.Due.IsZero() {
		t.Errorf("heard: %+v, %+v", v, st)
	}
	if v := silence(0, 4050); v.changed { // a cache that has missed the frame
		t.Errorf("raised again by an old time: %+v", v)
	}
	// A cache may keep the time of the frame less exactly.
	if v := silence(3999.9, 4061); v.State != Raised || st.AlarmID == first || !st.RaisedAt.Equal(second(4060)) {
		t.Errorf("%+v", v)
	}
	if v := silence(4050, 4062); v.State != Cleared { // a frame came at the same time
		t.Errorf("%+v", v)
	}
}

func TestCompile(t *testing.T) {
	ok := func() Rule {
		return Rule{ID: "r1", Name: "Hot", On: OnReading, When: "values.t > 30", Actions: []Action{{Action: Email, Parameters: []string{"a@example.com"}}}}
	}
	for name, tc := range map[string]struct {
		change func(*Rule)
		want   string // field: text
	}{
		"as it is":                      {func(*Rule) {}, ""},
		"no name":                       {func(r *Rule) { r.Name = "" }, "name: required"},
		"a long name":                   {func(r *Rule) { r.Name = strings.Repeat("x", 256) }, "name: 255"},
		"another trigger":               {func(r *Rule) { r.On = "never" }, "on: must be reading, silent or event"},
		"a condition that is none":      {func(r *Rule) { r.When = "values.t >" }, "when: line 1, column"},
		"a clear that is none":          {func(r *Rule) { r.Clear = "values.t > 1 and\n nothing == 2" }, "clear: line 2, column 2"},
		"a clear without when":          {func(r *Rule) { r.When, r.Clear = "", "values.t < 1" }, "clear: needs a when"},
		"for without when":              {func(r *Rule) { r.When, r.For = "", time.Minute }, "for: needs a when"},
		"for ever":                      {func(r *Rule) { r.For = 1000 * 24 * time.Hour }, "for: 366 days"},
		"repeat without when":           {func(r *Rule) { r.When, r.Repeat.Always = "", true }, "repeat: needs a when"},
		"repeat too often":              {func(r *Rule) { r.Repeat.Every = time.Millisecond }, "repeat: 1 second"},
		"silent_for on reading":         {func(r *Rule) { r.SilentFor = time.Hour }, "silent_for: rules on silent"},
		"silence of a second":           {func(r *Rule) { r.On, r.When, r.SilentFor = OnSilent, "", time.Second }, "silent_for: between 1 minute"},
		"silence with a condition":      {func(r *Rule) { r.On, r.SilentFor = OnSilent, time.Hour }, "when: has no when"},
		"silence that repeats always":   {func(r *Rule) { r.On, r.When, r.SilentFor, r.Repeat.Always = OnSilent, "", time.Hour, true }, "repeat: never or a duration"},
		"a batch with when":             {func(r *Rule) { r.Batch.Count = 3 }, "batch: without a when"},
		"a batch of too many":           {func(r *Rule) { r.When, r.Batch.Count = "", 1001 }, "batch.count: 1000"},
		"a batch for too long":          {func(r *Rule) { r.When, r.Batch.Every = "", 48*time.Hour }, "batch.every: 24 hours"},
		"no action":                     {func(r *Rule) { r.Actions = nil }, "actions: between 1 and 10"},
		"too many devices":              {func(r *Rule) { r.Devices.IDs = make([]string, 10_001) }, "devices.ids: 10000"},
		"an action that is checked too": {func(r *Rule) { r.Actions[0].Action = "fax" }, "actions[0].action: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := ok()
			tc.change(&r)
			_, err := Compile(&r)
			field, text, _ := strings.Cut(tc.want, ": ")
			problems := relay.FieldsOf(err)
			if tc.want == "" && err == nil {
				return
			}
			if relay.KindOf(err) != relay.KindInvalid || len(problems[field]) == 0 || !strings.Contains(problems[field][0], text) {
				t.Errorf("%v %v, want %s", err, problems, tc.want)
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
		"all":                    {Devices{}, true},
		"its id":                 {Devices{IDs: []string{"d0", "d1"}}, true},
		"other ids":              {Devices{IDs: []string{"d0"}}, false},
		"its decoder":            {Devices{DecoderID: "dec"}, true},
		"another decoder":        {Devices{DecoderID: "x"}, false},
		"its location":           {Devices{LocationID: "yard", DecoderID: "dec"}, true},
		"its decoder, elsewhere": {Devices{LocationID: "x", DecoderID: "dec"}, false},
		"a beginning":            {Devices{Name: "Cold*"}, true},
		"an end":                 {Devices{Name: "*12"}, true},
		"parts in order":         {Devices{Name: "C*room*1*"}, true},
		"parts out of order":     {Devices{Name: "*room*Cold*"}, false},
		"the name":               {Devices{Name: "Cold room 12"}, true},
		"a part alone":           {Devices{Name: "Cold"}, false},
		"overlapping ends":       {Devices{Name: "Cold room 12*2"}, false},
		"any":                    {Devices{Name: "**"}, true},
	} {
		if s := newSelection(tc.devices); s.has(d) != tc.want {
			t.Errorf("%s: want %v", name, tc.want)
		}
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("a*b*c", "axbxc")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		matches := func(pattern, text string) bool { p := newPattern(pattern); return p.matches(text) }
		got := matches(pattern, text)
		if !strings.Contains(pattern, "*") && got != (pattern == text) {
			t.Errorf("%q and %q: %v", pattern, text, got)
		}
		if !matches(pattern+"*", pattern+text) && !strings.Contains(pattern, "*") || !matches("*"+text+"*", "x"+strings.ReplaceAll(text, "*", "yy")+"z") {
			t.Errorf("%q and %q", pattern, text)
		}
	})
}

func TestReadingsBeforeFollowTheFrames(t *testing.T) {
	frames := []*ruleFrame{frameAt(1, "t", 1), frameAt(2, "h", 5), frameAt(3, "t", 3)}
	follow(frames, []iot.Point{{Key: "t", Value: 9, Time: second(0)}}, time.UTC)
	for i, want := range []map[string]any{{"t": 9.0}, {"t": 1.0}, {"t": 1.0, "h": 5.0}} {
		if got := frames[i].subject.Previous; !reflect.DeepEqual(got, want) {
			t.Errorf("frame %d: %v, want %v", i, got, want)
		}
	}
}

// Networks that tell whole seconds give two frames one time.
func TestTwoFramesOfOneTimeAreBothEvaluated(t *testing.T) {
	p, st := compiled(t, Rule{On: OnReading, When: "values.t > 30"}), PairState{Pair: Pair{"r1", "d1"}}
	frame := func(record string, value int) *ruleFrame {
		g := frameAt(10, "t", value)
		g.record = record
		return g
	}
	if v := p.step(1, &st, frame("n-u9", 31)); v.State != Raised {
		t.Fatalf("the first: %+v", v)
	}
	if v := p.step(1, &st, frame("n-u9", 31)); v.changed || v.matched {
		t.Errorf("the first, processed again: %+v", v)
	}
	if v := p.step(1, &st, frame("n-u10", 20)); v.State != Cleared {
		t.Errorf("the second: %+v", v)
	}
	if v := p.step(1, &st, frame("n-u9", 31)); v.changed {
		t.Errorf("the first, processed once more: %+v", v)
	}
}

func TestParametersAreFewTogether(t *testing.T) {
	r := Rule{ID: "r1", Name: "Many", On: OnReading, When: "values.t > 30"}
	for range 3 {
		a := Action{Action: Email}
		for i := range 34 {
			a.Parameters = append(a.Parameters, fmt.Sprintf("a%d@example.com", i))
		}
		r.Actions = append(r.Actions, a)
	}
	if _, err := Compile(&r); len(relay.FieldsOf(err)["actions"]) != 1 {
		t.Errorf("102 parameters: %v", err)
	}
	r.Actions[0].Parameters = r.Actions[0].Parameters[:32]
	if _, err := Compile(&r); err != nil {
		t.Errorf("100 parameters: %v", err)
	}
}
