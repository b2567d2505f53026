package netserver

import (
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
	"github.com/penstock/penstock/relay/relaytest"
)

// caseFrame parses a case with one frame.
func caseFrame(t *testing.T, name string) decoders.Frame {
	t.Helper()
	a, err := txtar.ParseFile("testdata/" + name + ".txtar")
	relaytest.NoError(t, err)
	frames, err := Parse(post(t, a))
	relaytest.NoError(t, err)
	if len(frames) != 1 {
		t.Fatalf("%s: %d frames, want 1", name, len(frames))
	}
	return frames[0]
}

func TestASupplementHasTheDedupIDOfItsFrame(t *testing.T) {
	for _, c := range []struct {
		name, frame, supplement string
		kind                    decoders.FrameKind
	}{
		{"LORIOT's gw adds to its rx", "loriot-rx", "loriot-gw", decoders.Uplink},
		{"Everynet's copy adds a gateway", "everynet-uplink", "everynet-duplicate", decoders.Uplink},
		{"Sigfox's copy adds a station", "sigfox-data", "sigfox-duplicate", decoders.Uplink},
		{"Sigfox's advanced callback with data is an uplink", "sigfox-data", "sigfox-advanced-data", decoders.Uplink},
		{"Sigfox's advanced callback without data is a location", "sigfox-data", "sigfox-advanced", decoders.Location},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s := caseFrame(t, c.frame), caseFrame(t, c.supplement)
			if f.DedupID == "" {
				t.Error("the frame has no dedup id")
			}
			relaytest.Equal(t, "the dedup id of the supplement", s.DedupID, f.DedupID)
			relaytest.Equal(t, "the device of the supplement", s.Identifier, f.Identifier)
			relaytest.Equal(t, "the kind of the supplement", s.Kind, c.kind)
			relaytest.Equal(t, "whether the frame and the supplement are supplements", [2]bool{f.Supplement, s.Supplement}, [2]bool{false, true})
		})
	}
}

func TestAFrameIsTheSameInEachFormat(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
	}{
		{"ThingPark in JSON, in JSON with string values and in XML", []string{"thingpark-uplink", "thingpark-untyped", "thingpark-xml"}},
		{"Sigfox in JSON and as a form", []string{"sigfox-data", "sigfox-form"}},
		{"ChirpStack v3 with and without its query", []string{"chirpstack3-up", "chirpstack3-up-no-event"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := render(t, []decoders.Frame{caseFrame(t, c.files[0])})
			for _, file := range c.files[1:] {
				if got := render(t, []decoders.Frame{caseFrame(t, file)}); got != want {
					t.Errorf("%s:\n%s\nwant, as %s:\n%s", file, got, c.files[0], want)
				}
			}
		})
	}
}

func TestDifferentFramesHaveDifferentDedupIDs(t *testing.T) {
	for _, c := range []struct{ name, a, b string }{
		{"two counters at one time", `{"DevEUI_uplink":{"DevEUI":"A84041D2C5182F01","FCntUp":1,"payload_hex":"01","Time":"2026-02-14T07:30:12Z"}}`,
			`{"DevEUI_uplink":{"DevEUI":"A84041D2C5182F01","FCntUp":2,"payload_hex":"01","Time":"2026-02-14T07:30:12Z"}}`},
		{"the same counter after a rejoin", `{"cmd":"rx","EUI":"A84041D2C5182F01","fcnt":1,"ts":1771050612482,"data":"01"}`,
			`{"cmd":"rx","EUI":"A84041D2C5182F01","fcnt":1,"ts":1771054612482,"data":"01"}`},
		{"receptions without an uplink ID", `{"applicationID":"1","devEUI":"a84041d2c5182f01","fCnt":1,"rxInfo":[{"uplinkID":"AAAAAAAAAAAAAAAAAAAAAA==","time":"2026-02-14T07:30:12Z"}],"data":""}`,
			`{"applicationID":"1","devEUI":"a84041d2c5182f01","fCnt":2,"rxInfo":[{"uplinkID":"AAAAAAAAAAAAAAAAAAAAAA==","time":"2026-02-14T07:40:12Z"}],"data":""}`},
		{"UbiBot feeds of different times", `{"channel_id":"1","feeds":[{"created_at":"2026-02-14T07:30:12Z","field1":1}]}`,
			`{"channel_id":"1","feeds":[{"created_at":"2026-02-14T07:40:12Z","field1":1}]}`},
		{"a Sigfox sequence number that recurs", `{"device":"1","seqNumber":7,"time":1771050612,"data":"01"}`,
			`{"device":"1","seqNumber":7,"time":1773050612,"data":"01"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, errA := Parse(Post{Body: []byte(c.a)})
			b, errB := Parse(Post{Body: []byte(c.b)})
			relaytest.NoError(t, errA, errB)
			if len(a) != 1 || len(b) != 1 {
				t.Fatalf("%d and %d frames, want one each", len(a), len(b))
			}
			if a[0].DedupID == "" || a[0].DedupID == b[0].DedupID {
				t.Errorf("the dedup ids are %q and %q, want different ones", a[0].DedupID, b[0].DedupID)
			}
		})
	}
}

// TestEveryParserHasACase checks that each parser has a case with a time and a payload or
// values and, if its sender is a network server, with receptions.
func TestEveryParserHasACase(t *testing.T) {
	covered := map[Sender]bool{}
	for _, path := range cases(t) {
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		p := post(t, a)
		frames, _ := Parse(p)
		for _, f := range frames {
			hasGateways := len(f.Gateways) > 0 || isVendor(Sender(f.Sender))
			hasTime := !f.NetworkTime.IsZero() || !f.SampleTime.IsZero()
			hasData := len(f.Payload) > 0 || len(f.Object) > 0 || len(f.Samples) > 0 || f.Kind == decoders.Alert
			if hasGateways && hasTime && hasData {
				covered[Detect(p)] = true
			}
		}
	}
	for _, s := range senders() {
		if row := rowOf(s); row.hasParser() && !covered[s] {
			t.Errorf("the parser of %s has no case", s)
		}
	}
}

func senders() []Sender {
	return []Sender{ChirpStackV4, ChirpStackV3, TheThingsStack, TTNv2, Helium, ThingPark, LORIOT, CRA, Everynet, Netmore,
		SenML, KPN, Kerlink, Monnit, MonnitRule, Disruptive, UbiBot, MilesightDP, AWSIoTCore, Sigfox, Generic}
}

// isVendor reports whether a sender is not a network server, so that it reports no receptions.
func isVendor(s Sender) bool {
	switch s {
	case SenML, KPN, Monnit, MonnitRule, Disruptive, UbiBot, MilesightDP, Generic:
		return true
	}
	return false
}

func TestTimesOfEachFormatAreRead(t *testing.T) {
	instant := time.Date(2026, 2, 14, 6, 30, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		text string
		want time.Time
	}{
		"RFC 3339":                       {`"2026-02-14T07:30:05+01:00"`, instant},
		"an offset without a colon":      {`"2026-02-14T07:30:05+0100"`, instant},
		"a fraction of a second":         {`"2026-02-14T06:30:05.250Z"`, instant.Add(250 * time.Millisecond)},
		"a blank instead of T, no zone":  {`"2026-02-14 06:30:05"`, instant},
		"the American format":            {`"2/14/2026 6:30:05 AM"`, instant},
		"the American format, afternoon": {`"2/14/2026 6:30:05 PM"`, instant.Add(12 * time.Hour)},
		"seconds":                        {`1771050605`, instant},
		"seconds as a string":            {`"1771050605"`, instant},
		"seconds with a fraction":        {`1771050605.25`, instant.Add(250 * time.Millisecond)},
		"milliseconds":                   {`1771050605250`, instant.Add(250 * time.Millisecond)},
		"milliseconds as a string":       {`"1771050605250"`, instant.Add(250 * time.Millisecond)},
		"a malformed time":               {`"2026-0214T06:30:05Z"`, time.Time{}},
		"a number out of range":          {`1e30`, time.Time{}},
		"an object":                      {`{}`, time.Time{}},
		"null":                           {`null`, time.Time{}},
		"a negative number":              {`-5`, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := jsonbody.New([]byte(c.text))
			if got, ok := anyTime(r.Value()); !got.Equal(c.want) || ok != !c.want.IsZero() {
				t.Errorf("got %v, %v, want %v", got, ok, c.want)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	n := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		lat, lon *float64
		valid    bool
	}{
		"a position":                 {n(51.9), n(4.4), true},
		"on the equator":             {n(0), n(4.4), true},
		"zeros":                      {n(0), n(0), false},
		"no longitude":               {n(51.9), nil, false},
		"beyond the pole":            {n(91), n(4.4), false},
		"beyond the date line":       {n(51.9), n(-180.5), false},
		"no coordinates":             {nil, nil, false},
		"the pole and the date line": {n(-90), n(180), true},
	} {
		if got := place(c.lat, c.lon); (got != nil) != c.valid {
			t.Errorf("%s: got %v, want a position: %t", name, got, c.valid)
		}
	}
}
