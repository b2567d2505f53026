package uplink

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// chirpstack returns an uplink of ChirpStack 4.
func chirpstack(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/chirpstack-v4-up.json")
	relaytest.NoError(t, err)
	return string(b)
}

func TestPostsAreAnswered(t *testing.T) {
	f := newFlow(t)
	f.run()
	up := chirpstack(t)
	tooLarge := `{"id":"x","v":"` + strings.Repeat("x", 5000) + `"}`
	cases := []struct {
		name, target, token, body string
		headers                   []string
		status                    int
		want                      string
	}{
		{"a frame", "/webhooks/lorawan?decoder_id=d1", "hook-1", up, nil, 200, ""},
		{"a path below the webhook", "/webhooks/lorawan/dataUp", "hook-1", up, nil, 200, ""},
		{"another webhook", "/webhooks/sensor-vendor", "hook-1", up, nil, 200, ""},
		{"a frame as text/plain", "/webhooks/community", "hook-1", up, []string{"Content-Type", "text/plain"}, 200, ""},
		{"an unknown object", "/webhooks/lpwan", "hook-1", `{"a":1}`, nil, 200, ""},
		{"a sender without a parser", "/webhooks/lorawan", "hook-1", `<unknown/>`, nil, 200, ""},
		{"UbiBot", "/webhooks/sensor-vendor", "hook-1", `{"channel_id":"1","feeds":[]}`, nil, 200, "SUCCESS"},
		{"invalid JSON", "/webhooks/lorawan", "hook-1", `{"a":`, nil, 422, `{"message":"Invalid JSON."}`},
		{"no body", "/webhooks/lorawan", "hook-1", "", nil, 422, `{"message":"Invalid JSON."}`},
		{"invalid JSON for the generic webhook", "/webhooks/generic/x", "hook-1", "hello", nil, 422, `{"message":"Invalid JSON."}`},
		{"protobuf", "/webhooks/lorawan", "hook-1", "\x0a\x02", []string{"Content-Type", "application/octet-stream"}, 415, `{"message":"Protobuf is not supported: set the integration's encoding to JSON."}`},
		{"a body above the limit", "/webhooks/lorawan", "hook-1", tooLarge, nil, 413, `{"message":"Request Entity Too Large"}`},
		{"no token", "/webhooks/lorawan", "", up, nil, 401, `{"message":"Unauthenticated."}`},
		{"an unknown token", "/webhooks/lorawan", "nobody", up, nil, 401, `{"message":"Unauthenticated."}`},
		{"a token without the scope", "/webhooks/lorawan", "customer", up, nil, 403, `{"message":"Forbidden."}`},
		{"an unknown webhook", "/webhooks/other", "hook-1", up, nil, 404, `{"message":"Not found."}`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			status, body := f.post(tc.target, tc.token, tc.body, tc.headers...)
			relaytest.Equal(t, "the status", status, tc.status)
			relaytest.Equal(t, "the answer", body, tc.want)
		})
	}
	f.waitProcessed()
	if got := f.readings.stored(); !slices.Equal(got, []string{"24e124136b502217 temperature"}) {
		t.Errorf("readings = %q, want one for three posts of a frame", got)
	}
	var reasons []string
	for _, e := range f.events(event.Quarantined) {
		reasons = append(reasons, e.ID+" "+e.Source+": "+e.Reason)
	}
	want := []string{
		`n1-u5 generic: generic: deviceId: is missing, and so are device_id, deviceEUI, devEUI, id and a device in the address`,
		`n1-u6 xml: netserver: bodies of sender "xml" are not supported`,
	}
	if len(reasons) < 2 {
		t.Fatalf("quarantined entries = %d, want at least 2: %q", len(reasons), reasons)
	}
	relaytest.Equal(t, "the first reason", reasons[0], want[0])
	answertest.HasPrefix(t, "the second reason", reasons[1], want[1])
}

func TestTheGenericWebhookAnswersWithTheUpdatedSensors(t *testing.T) {
	f := newFlow(t)
	f.run()
	status, body := f.post("/webhooks/generic/tank%207?decoder_id=d1", "hook-1", `{"temperature":21.5,"time":"2026-03-01T12:00:00Z","id":"ignored"}`)
	d, err := f.db.Devices.DeviceByIdentifier(t.Context(), 1, "tank 7")
	relaytest.NoError(t, err)
	want := fmt.Sprintf(`{"data":[{"sensor_id":"%s","device_id":"%s","key":"temperature","name":"Temperature","value":21.5,`+
		`"reading_date":"%s","metric_units":"°C","imperial_units":"°F"}]}`, iot.SensorID(d.ID, "temperature"), d.ID, "2026-03-01 12:00:00")
	relaytest.Equal(t, "the status", status, 200)
	relaytest.Equal(t, "the answer", body, want)
	for name, tc := range map[string]struct{ target, body, identifier, want string }{
		"an id with a plus and a slash": {"/webhooks/generic/a+b%2Fc?decoder_id=d1", `{"temperature":1}`, "a+b/c", `"value":1`},
		"an unescaped slash":            {"/webhooks/generic/site/3?decoder_id=d1", `{"temperature":1}`, "site/3", `"value":1`},
		"an escaped percent sign":       {"/webhooks/generic/100%2525?decoder_id=d1", `{"temperature":1}`, "100%25", `"value":1`},
		"a path in capitals":            {"/WEBHOOKS/Generic/Big?decoder_id=d1", `{"temperature":1}`, "Big", `"value":1`},
		"the id in the body":            {"/webhooks/generic?decoder_id=d1", `{"temperature":1,"id":"in body"}`, "in body", `"value":1`},
		"a list of two devices":         {"/webhooks/generic?decoder_id=d1", `[{"temperature":1,"id":"one"},{"temperature":2,"id":"two"}]`, "two", `"value":2`},
		"a string with special characters": {"/webhooks/generic/text?decoder_id=d1", `{"T&<>":"a&b"}`, "text",
			`"key":"T&<>","name":"Temperature","value":null,"text":"a&b"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := f.post(tc.target, "hook-1", tc.body)
			relaytest.Equal(t, "the status", status, 200)
			answertest.Contains(t, "the answer", body, tc.want)
			if _, err := f.db.Devices.DeviceByIdentifier(t.Context(), 1, tc.identifier); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheGenericWebhookSaysWhyNoSensorIsUpdated(t *testing.T) {
	f := newFlow(t)
	f.run()
	const form = "application/x-www-form-urlencoded"
	for name, tc := range map[string]struct{ target, contentType, body, note string }{
		"no mapped key":                 {"/new?decoder_id=d1", "", `{"x":1,"w":2}`, "no sensor is mapped to any key of the frame: w, x"},
		"no device":                     {"?decoder_id=d1", "", `{"temperature":1}`, "generic: deviceId: is missing, and so are device_id, deviceEUI, devEUI, id and a device in the address"},
		"an item that is not an object": {"?decoder_id=d1", "", `[1]`, "generic: 0: must be an object of values"},
		"an unknown decoder":            {"/other?decoder_id=d9", "", `{"temperature":1}`, "decoder d9 is not known"},
		"a misspelt parameter":          {"/third?decoder=d1", "", `{"temperature":1}`, `the URL's parameter "decoder" is unknown and is ignored; valid parameters are decoder_id, event and, for the generic webhook, deviceId`},
		"a form":                        {"/fourth?decoder_id=d1", form, `temperature=1`, `netserver: bodies of sender "form" are not supported: only the forms of Sigfox are read`},
		"an empty list":                 {"?decoder_id=d1", "", `[]`, "the post has no frames"},
		"an object for a number":        {"/fifth?decoder_id=d1", "", `{"temperature":{"value":1}}`, "no sensor is mapped to any key of the frame: temperature.value"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := f.post("/webhooks/generic"+tc.target, "hook-1", tc.body, "Content-Type", tc.contentType)
			relaytest.Equal(t, "the status", status, 200)
			var got struct {
				Data  []any
				Notes []string
			}
			relaytest.NoError(t, json.Unmarshal([]byte(body), &got))
			relaytest.Equal(t, "the updated sensors", got.Data, []any{})
			if !slices.Contains(got.Notes, tc.note) {
				t.Errorf("notes = %q, want %q", got.Notes, tc.note)
			}
		})
	}
}

func TestNotesStandInTheAnswerAndInTheEvent(t *testing.T) {
	f := newFlow(t)
	f.run()
	for _, tc := range []struct {
		name, target, body string
		notes              []string
	}{
		{"an invalid time", "/webhooks/generic/shed?decoder_id=d1", `{"temperature":1,"time":"26/11/2026 12:00"}`,
			[]string{`time: is neither ISO 8601 nor seconds or milliseconds since 1970: "26/11/2026 12:00"; the time of receipt is used`}},
		{"a number in a string", "/webhooks/generic/shed?decoder_id=d1", `{"temperature":"-1.6"}`, []string{`temperature: the string "-1.6" is stored as the number -1.6`}},
		{"an unknown parameter", "/webhooks/generic/shed?decoder_id=d1&n=1", `{"temperature":1}`,
			[]string{`the URL's parameter "n" is unknown and is ignored; valid parameters are decoder_id, event and, for the generic webhook, deviceId`}},
		{"no notes", "/webhooks/generic/shed?decoder_id=d1", `{"temperature":1}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, body := f.post(tc.target, "hook-1", tc.body)
			var answer iot.UpdatedSensors
			relaytest.NoError(t, json.Unmarshal([]byte(body), &answer))
			relaytest.Equal(t, "the number of updated sensors", len(answer.Sensors), 1)
			relaytest.Equal(t, "the notes of the answer", []string(answer.Notes), tc.notes)
			f.waitProcessed()
			relaytest.Equal(t, "the notes of the event", []string(f.lastEvent().Notes), tc.notes)
		})
	}
}

// Only uplinks have readings; other frames, and uplinks without data, have a note.
func TestNothingIsDoneWithoutAReadingOrANote(t *testing.T) {
	f := newFlow(t)
	f.run()
	const device = `"deviceInfo":{"devEui":"a84041d2c5182f01"}`
	f.post("/webhooks/lorawan?decoder_id=d1", "hook-1", chirpstack(t))
	for _, tc := range []struct{ name, target, body, note string }{
		{"a join", "/webhooks/lorawan?event=join", `{` + device + `}`, "frames of the kind join have no readings"},
		{"an uplink without data", "/webhooks/lorawan?event=up", `{` + device + `,"fPort":2}`, "the frame has no readings: it has neither a payload on a port of the application nor decoded values"},
		{"a post without frames", "/webhooks/lorawan", `[]`, "the post has no frames"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f.post(tc.target, "hook-1", tc.body)
			f.waitProcessed()
			got := f.lastEvent()
			if !slices.Contains(got.Notes, tc.note) {
				t.Errorf("notes of event %s = %q, want %q", got.ID, got.Notes, tc.note)
			}
		})
	}
}

func TestPostsAreAcceptedWhileTheDatabaseIsDown(t *testing.T) {
	server := dbtest.StartPostgres(t)
	f := newFlowOn(t, recordstest.OpenURL(t, server.NewDatabase(t)))
	f.run()
	f.post("/webhooks/generic/a?decoder_id=d1", "hook-1", `{"temperature":1}`)
	server.Kill()
	for i := range 5 {
		status, body := f.post("/webhooks/lorawan?decoder_id=d1", "hook-1", fmt.Sprintf(`{"id":"down%d","temperature":1}`, i))
		relaytest.Equal(t, "the status", status, 200)
		relaytest.Equal(t, "the answer", body, "")
	}
	status, body := f.post("/webhooks/generic/b?decoder_id=d1", "hook-1", `{"temperature":1}`)
	relaytest.Equal(t, "the status of the generic webhook", status, 200)
	relaytest.Equal(t, "the answer of the generic webhook", body, `{"data":[]}`)
	if status, _ := f.post("/webhooks/lorawan", "hook-2", `{}`); status != 503 {
		t.Errorf("status for an unknown token = %d, want 503", status)
	}
	server.Start()
	redistest.Await(t, "the database answers", func(ctx context.Context) bool {
		_, err := f.db.Devices.SensorTypes(ctx)
		return err == nil
	})
	f.waitProcessed()
	if got := f.readings.stored(); len(got) != 7 {
		t.Errorf("readings = %q, want 7", got)
	}
	relaytest.Equal(t, "the number of quarantined events", len(f.events(event.Quarantined)), 0)
}

func TestPostsAreAnswered503WhileTheJournalIsClosed(t *testing.T) {
	f := newFlow(t)
	relaytest.NoError(t, f.log.Close())
	for _, target := range []string{"/webhooks/lorawan", "/webhooks/generic"} {
		status, body := f.post(target, "hook-1", `{"id":"x"}`)
		relaytest.Equal(t, target+": the status", status, 503)
		answertest.Contains(t, target, body, "try again later")
	}
}

func TestTheReadableElementsOfAListAreStored(t *testing.T) {
	f := newFlow(t)
	f.run()
	f.post("/webhooks/generic?decoder_id=d1", "hook-1", `[{"temperature":1,"id":"one"},7,{"temperature":2}, {"temperature":3,"id":"three"}]`)
	f.waitProcessed()
	relaytest.Equal(t, "the readings", f.readings.stored(), []string{"one temperature", "three temperature"})
	got := f.events(event.Quarantined)
	if len(got) != 1 {
		t.Fatalf("quarantined events = %d, want 1", len(got))
	}
	answertest.Contains(t, "the reason", got[0].Reason, "1: must be an object of values")
}

// Fiber reuses the memory of a request: accepted entries must not change when other requests
// follow.
func TestEntriesOfConcurrentRequestsDoNotMix(t *testing.T) {
	f := newFlow(t)
	const postsPerSender = 40
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range postsPerSender {
				name := fmt.Sprintf("dev-%d-%d", n, i)
				f.post("/webhooks/generic/"+name+"?decoder_id=d1&n="+name, "hook-"+fmt.Sprint(1+n%2), fmt.Sprintf(`{"temperature":%d,"name":%q}`, i, name))
			}
		})
	}
	f.run()
	wg.Wait()
	f.waitProcessed()
	events := append(f.events(event.Done), f.events(event.Quarantined)...)
	if len(events) != 4*postsPerSender {
		t.Fatalf("events = %d, want %d", len(events), 4*postsPerSender)
	}
	for _, e := range events {
		var n, i int
		offset := strings.Index(string(e.Raw), `"dev-`)
		_, err := fmt.Sscanf(string(e.Raw)[offset:], `"dev-%d-%d"`, &n, &i)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the account of "+e.ID, int(e.Account), 1+n%2)
		relaytest.Equal(t, "the state of "+e.ID, e.State, event.Done)
	}
	if got := f.readings.stored(); len(slices.Compact(got)) != 4*postsPerSender {
		t.Errorf("readings = %d, want %d", len(got), 4*postsPerSender)
	}
}

func TestHEADIsRefused(t *testing.T) {
	f := newFlow(t)
	f.run()
	status, _, header := f.call("HEAD", "/webhooks/lpwan?device=4D2C1A&data=00ff&time=1700000000&seqNumber=1", "hook-1", "")
	relaytest.Equal(t, "the status", status, 405)
	relaytest.Equal(t, "the methods", header.Get("Allow"), "GET, POST, PUT")
	relaytest.Equal(t, "the number of entries in the journal", f.log.Stats().Last, 0)
}
