package rule

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

var update = flag.Bool("update", false, "write the deliveries to testdata")

func testSettings(t *testing.T) Settings {
	t.Helper()
	zone, err := time.LoadLocation("Europe/London")
	relaytest.NoError(t, err)
	return Settings{Zone: zone, MailDomain: "gw.example", PublicURL: "https://gw.example", Now: func() time.Time { return time.Date(2026, 7, 3, 9, 6, 0, 0, time.UTC) }}
}

// occurrences returns the occurrences of the golden files, by name.
func occurrences(r *Rule) map[string][]Occurrence {
	latitude, rssi, port := 51.5, -97.5, int64(2)
	frameTime := time.Date(2026, 7, 3, 8, 5, 0, 250e6, time.UTC)
	raised := Occurrence{
		Rule: r, AlarmID: "a1", State: Raised, Record: "n1-7", Time: frameTime,
		Device: iot.Device{
			ID: "d1", Identifier: "0102030405060708", Name: "Cold room 1 & 2", DecoderID: "dec1", LocationID: "loc1", Latitude: &latitude,
			LastSeen: frameTime.Add(-10 * time.Minute),
		},
		Readings: map[string]Value{
			"temperature": {Value: 31.5, Units: "°C"}, "air.humidity": {Value: 40, Units: "%"}, "door": {Text: "öffen <1>", IsText: true}, "count": {Value: 1234567},
		},
		Radio: &iot.RadioData{FPort: &port, RSSI: &rssi},
	}
	cleared, forwarded, silent, event := raised, raised, raised, raised
	cleared.State, cleared.Record = Cleared, "n1-8"
	cleared.Previous = map[string]Value{"temperature": {Value: 33, Units: "°C"}}
	forwarded.State, forwarded.AlarmID = Forwarded, ""
	silent.Record, silent.Readings, silent.Radio = "", nil, nil
	event.Readings, event.Radio, event.Event = nil, nil, map[string]any{"type": "status", "battery": 12.5}
	nextFrame := forwarded
	nextFrame.Record, nextFrame.Time = "n1-9", frameTime.Add(time.Minute)
	nextFrame.Device.Name = ""
	nextFrame.Readings = map[string]Value{"temperature": {Value: 30, Units: "°C"}}
	return map[string][]Occurrence{
		"raised": {raised}, "cleared": {cleared}, "forwarded": {forwarded}, "silent": {silent}, "event": {event}, "batch": {forwarded, nextFrame},
	}
}

// parseRule parses a rule document of the API.
func parseRule(t *testing.T, document string) Rule {
	t.Helper()
	var change Change
	if err := json.Unmarshal([]byte(document), &change); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	r, err := change.New()
	relaytest.NoError(t, err)
	r.ID = "r1"
	return r
}

// TestDeliveriesOfActions compares the deliveries of rules with the golden files in testdata.
func TestDeliveriesOfActions(t *testing.T) {
	files, err := filepath.Glob("testdata/actions/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d golden files, want at least 5; %v", len(files), err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			relaytest.NoError(t, err)
			r := parseRule(t, string(archive.Files[0].Data))
			p, err := Compile(&r)
			if err != nil {
				t.Fatal(err, relay.FieldsOf(err))
			}
			occurrencesByName := occurrences(&r)
			for i := 1; i < len(archive.Files); i++ {
				name := archive.Files[i].Name
				if occurrencesByName[name] == nil {
					t.Fatalf("unknown occurrence %s", name)
				}
				ds, err := p.actions.deliveries(occurrencesByName[name], 3, testSettings(t), 1000)
				got := formatDeliveries(t, ds, err)
				if *update {
					archive.Files[i].Data = []byte(got)
				} else if want := string(archive.Files[i].Data); got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
				}
			}
			if *update {
				relaytest.NoError(t, os.WriteFile(path, txtar.Format(archive), 0o600))
			}
		})
	}
}

// formatDeliveries formats deliveries and their error for a golden file.
func formatDeliveries(t *testing.T, ds []outbox.Delivery, deliveriesErr error) string {
	t.Helper()
	var b strings.Builder
	for _, d := range ds {
		relaytest.Equal(t, "the account, kind, relay and state of delivery "+d.ID,
			[]any{d.Account, d.Kind, d.Relay, d.State}, []any{relay.AccountID(3), outbox.KindRule, "r1", outbox.Queued})
		if d.CreatedAt.IsZero() || d.Endpoint == "" {
			t.Errorf("delivery %s: CreatedAt = %v, Endpoint = %q, want both set", d.ID, d.CreatedAt, d.Endpoint)
		}
		fmt.Fprintf(&b, "delivery %s about %s to %s\n", d.ID, d.MessageID, d.Target())
		switch {
		case d.Mail != nil:
			fmt.Fprintf(&b, "Message-ID: %s\nSubject: %s\n\n%s", d.Mail.MessageID, d.Mail.Subject, withNewline(d.Mail.Text))
		case d.SMS != nil:
			fmt.Fprintf(&b, "from %q (%s to %s): %s", d.SMS.Originator, d.Originator, d.Destination, withNewline(d.SMS.Text))
		case len(d.Request.Body) > 0:
			var body bytes.Buffer
			if err := json.Indent(&body, d.Request.Body, "", "  "); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(&b, "%s %s\n%s", d.Request.Method, d.Request.ContentType, withNewline(body.String()))
		default:
			fmt.Fprintf(&b, "%s\n", d.Request.Method)
		}
	}
	if deliveriesErr != nil {
		fmt.Fprintf(&b, "failed: %v\n", deliveriesErr)
	}
	return b.String()
}

func withNewline(text string) string { return strings.TrimRight(text, "\n") + "\n" }

func TestInvalidActionsAreRefused(t *testing.T) {
	action := func(fields string) string { return `{"name": "n", "on": "reading", "actions": [` + fields + `]}` }
	for name, tc := range map[string]struct{ rule, field, message string }{
		"an unknown action":               {action(`{"action": "fax", "parameters": ["1"]}`), "actions[0].action", "one of http_post, http_get, email, sms"},
		"no parameters":                   {action(`{"action": "sms"}`), "actions[0].parameters", "between 1 and 100"},
		"an invalid second address":       {action(`{"action": "sms", "parameters": ["447700900123"]}, {"action": "email", "parameters": ["a@b.example", "a b"]}`), "actions[1].parameters[1]", "is not an e-mail address"},
		"a number with a plus":            {action(`{"action": "sms", "parameters": ["+447700900123"]}`), "actions[0].parameters[0]", "without a plus sign"},
		"a URL without a host":            {action(`{"action": "http_post", "parameters": ["https:///x"]}`), "actions[0].parameters[0]", "has no host"},
		"an unsupported scheme":           {action(`{"action": "http_get", "parameters": ["ftp://h/"]}`), "actions[0].parameters[0]", "the URL must begin with http:// or https://"},
		"an unknown placeholder":          {action(`{"action": "http_get", "parameters": ["https://h/?d=%devce"]}`), "actions[0].parameters[0]", `"%devce" is not a placeholder here; the placeholders are %rule, %state, %device, %identifier, %time, %key:NAME, and %25 for a percent sign`},
		"a key placeholder without a key": {action(`{"action": "http_get", "parameters": ["https://h/?d=%key:"]}`), "actions[0].parameters[0]", `"%key" is not a placeholder here`},
		"a placeholder in the host":       {action(`{"action": "http_get", "parameters": ["https://%key:host/"]}`), "actions[0].parameters[0]", "is allowed in the path and the query only"},
		"a URL that is too long":          {action(`{"action": "http_get", "parameters": ["https://h/` + strings.Repeat("a", 2048) + `"]}`), "actions[0].parameters[0]", "longer than 2048 characters"},
		"an invalid body":                 {action(`{"action": "http_post", "parameters": ["https://h/"], "body": "{\"a\":\n vlaues.t}"}`), "actions[0].body", "line 2, column 2: unknown name vlaues"},
		"http_get with a body":            {action(`{"action": "http_get", "parameters": ["https://h/"], "body": "1"}`), "actions[0].body", "http_post, email and sms"},
		"an e-mail with an originator":    {action(`{"action": "email", "parameters": ["a@b.example"], "originator": "x"}`), "actions[0].originator", "for the action sms"},
		"an originator that is too long":  {action(`{"action": "sms", "parameters": ["447700900123"], "originator": "twelve chars"}`), "actions[0].originator", "1 to 11 characters"},
		"a batch of text messages":        {`{"name": "n", "on": "reading", "batch": {"count": 2}, "actions": [{"action": "sms", "parameters": ["447700900123"]}]}`, "actions[0].action", "cannot carry a batch"},
	} {
		t.Run(name, func(t *testing.T) {
			r := parseRule(t, tc.rule)
			_, err := Compile(&r)
			if fields := relay.FieldsOf(err); len(fields) != 1 || !strings.Contains(strings.Join(fields[tc.field], " "), tc.message) {
				t.Errorf("error %v with fields %q, want %s: %q", err, fields, tc.field, tc.message)
			}
		})
	}
}

func TestURLsAreCheckedWhenARuleIsSaved(t *testing.T) {
	r := parseRule(t, `{"name": "n", "on": "reading", "actions": [{"action": "email", "parameters": ["a@b.example"]},
		{"action": "http_post", "parameters": ["https://ok.example/%state", "http://10.0.0.1/%key:t?d=%device"]}]}`)
	p, err := Compile(&r)
	relaytest.NoError(t, err)
	var checked []string
	err = p.actions.checkURLs(func(u string) error {
		checked = append(checked, u)
		if strings.Contains(u, "10.0.0.1") {
			return errors.New("address 10.0.0.1 is private")
		}
		return nil
	})
	if fields := relay.FieldsOf(err); len(fields) != 1 || !strings.Contains(strings.Join(fields["actions[1].parameters[1]"], " "), "address 10.0.0.1 is private") {
		t.Errorf("error %v with fields %q, want an error about the private address", err, fields)
	}
	relaytest.Equal(t, "the checked URLs", checked, []string{"https://ok.example/0", "http://10.0.0.1/0?d=0"})
}

// Each occurrence has its own delivery IDs. The same occurrence always has the same ones.
func TestDeliveryIDsDeriveFromTheOccurrence(t *testing.T) {
	const document = `{"name": "n", "on": "reading", "when": "values.temperature > 30", "actions": [
		{"action": "http_get", "parameters": ["https://h/", "https://h/"]}, {"action": "http_post", "parameters": ["https://h/"]}]}`
	r := parseRule(t, document)
	deliveryIDs := func(change func(*Occurrence, *Rule)) []string {
		r, o := parseRule(t, document), occurrences(&r)["raised"][0]
		change(&o, &r)
		o.Rule = &r
		p, err := Compile(&r)
		relaytest.NoError(t, err)
		ds, err := p.actions.deliveries([]Occurrence{o}, 3, testSettings(t), 1000)
		relaytest.NoError(t, err)
		var ids []string
		for _, d := range ds {
			ids = append(ids, d.ID)
		}
		return ids
	}
	raisedIDs := deliveryIDs(func(*Occurrence, *Rule) {})
	if ids := deliveryIDs(func(o *Occurrence, _ *Rule) { o.Readings = nil }); !slices.Equal(raisedIDs, ids) {
		t.Error("the delivery IDs depend on the readings of the alarm")
	}
	withCounter := deliveryIDs(func(o *Occurrence, _ *Rule) { o.Radio = radioWithCounter(7) })
	if ids := deliveryIDs(func(o *Occurrence, _ *Rule) { o.Radio, o.Record = radioWithCounter(7), "n1-99" }); !slices.Equal(withCounter, ids) {
		t.Error("the delivery IDs depend on the record of a frame with a counter")
	}
	namesByID := map[string]string{}
	for name, change := range map[string]func(*Occurrence, *Rule){
		"the raised alarm":       func(*Occurrence, *Rule) {},
		"cleared":                func(o *Occurrence, _ *Rule) { o.State = Cleared },
		"another alarm":          func(o *Occurrence, _ *Rule) { o.AlarmID = "a2" },
		"another frame":          func(o *Occurrence, _ *Rule) { o.Record = "n1-8" },
		"a frame with a counter": func(o *Occurrence, _ *Rule) { o.Radio = radioWithCounter(7) },
		"another counter":        func(o *Occurrence, _ *Rule) { o.Radio = radioWithCounter(8) },
		"the same counter later": func(o *Occurrence, _ *Rule) { o.Radio, o.Time = radioWithCounter(8), o.Time.Add(time.Second) },
		"an event of the frame":  func(o *Occurrence, _ *Rule) { o.Radio, o.Event = radioWithCounter(8), map[string]any{"type": "status"} },
		"a repeat":               func(o *Occurrence, _ *Rule) { o.Repeats = 1 },
		"another rule":           func(_ *Occurrence, r *Rule) { r.ID = "r2" },
	} {
		for i, id := range deliveryIDs(change) {
			if otherName := namesByID[id]; otherName != "" {
				t.Errorf("%s and %s have the same delivery ID %s", name, otherName, id)
			}
			namesByID[id] = fmt.Sprint(name, i)
		}
	}
}

func radioWithCounter(fCnt int64) *iot.RadioData { return &iot.RadioData{FCnt: &fCnt} }

// FuzzPlaceholders checks that texts of a device or a reading cannot change the host of a request.
func FuzzPlaceholders(f *testing.F) {
	f.Add("https://u:p@h:1/%device/a?b=%key:t&c=%rule", "../../x", "a\r\nb")
	f.Add("http://h/%key:t", "..", "@evil.example/")
	f.Fuzz(func(t *testing.T, raw, name, text string) {
		r := Rule{ID: "r1", Name: name, On: OnReading, Actions: []Action{{Action: HTTPGet, Parameters: []string{raw}}}}
		compiled, err := compileActions(&r, nil)
		if err != nil {
			return
		}
		o := Occurrence{Rule: &r, State: Raised, Device: iot.Device{ID: "d", Name: text, Identifier: name}, Readings: map[string]Value{"t": {Text: text, IsText: true}}}
		ds, err := compiled.deliveries([]Occurrence{o}, 1, Settings{Zone: time.UTC, Now: time.Now}, 1000)
		if err != nil || len(ds) != 1 {
			t.Fatal(ds, err)
		}
		got, err := url.Parse(ds[0].Request.URL)
		if err != nil {
			t.Fatalf("%q: %v", ds[0].Request.URL, err)
		}
		want, err := url.Parse(compiled.actions[0].urls[0].Sample())
		relaytest.NoError(t, err)
		origin := func(u *url.URL) []string { return []string{u.Scheme, u.Host, u.User.String()} }
		relaytest.Equal(t, "scheme, host and user of "+ds[0].Request.URL, origin(got), origin(want))
		relaytest.Equal(t, "the fragment of "+ds[0].Request.URL, got.Fragment, "")
		if strings.ContainsAny(ds[0].Request.URL, "\r\n \x00") {
			t.Errorf("the URL %q has unescaped characters", ds[0].Request.URL)
		}
	})
}

func TestBodiesAreValidJSON(t *testing.T) {
	r := parseRule(t, `{"name": "n", "on": "reading", "actions": [{"action": "http_post", "parameters": ["https://h/"]}]}`)
	p, err := Compile(&r)
	relaytest.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(occurrences(&r))) {
		ds, err := p.actions.deliveries(occurrences(&r)[name], 3, Settings{Zone: time.UTC, Now: time.Now}, 1000)
		relaytest.NoError(t, err)
		body := ds[0].Request.Body
		if !json.Valid(body) {
			t.Errorf("%s: the body is %s, want valid JSON", name, body)
		}
		if bytes.Contains(body, []byte("links")) {
			t.Errorf("%s: the body is %s, want no links without a PublicURL", name, body)
		}
	}
}
