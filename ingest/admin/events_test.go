package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// newOperatorAPIWithEvents returns an API with the events u1 u2 s1 u3 s2 u4 s3 in order of receipt.
// s2 is unrouted, u4 is quarantined, and s3 is pending.
func newOperatorAPIWithEvents(t *testing.T) *operatorAPI {
	o := newOperatorAPI(t)
	for _, entry := range []struct {
		kind event.Kind
		body string
	}{{"uplink", "1"}, {"uplink", "2"}, {"sms", "\xff"}, {"uplink", "3"}, {"sms", "nobody"}, {"uplink", "bad & <worse>"}} {
		o.accept(entry.kind, entry.body)
	}
	o.process()
	o.accept(event.SMS, "waits")
	return o
}

func TestEventsAreListed(t *testing.T) {
	o := newOperatorAPIWithEvents(t)
	for _, tc := range []struct{ name, query, want string }{
		{"no filter", "", "s3 u4 s2 u3 s1 u2 u1"},
		{"a kind", "?kind=sms", "s3 s2 s1"},
		{"a kind without a journal", "?kind=cdr", ""},
		{"pending events", "?state=pending", "s3"},
		{"quarantined events", "?state=quarantined", "u4"},
		{"unrouted events", "?state=unrouted", "s2"},
		{"processed events", "?state=done", "u3 s1 u2 u1"},
		{"an account", "?account=7", "s3 u4 s2 u3 s1 u2 u1"},
		{"another account", "?account=8", ""},
		{"a time range", "?from=2026-03-01T12:00:03Z&to=2026-03-01+12:00:05", "s2 u3 s1"},
		{"a search string", "?q=BECAUSE+of+nob", "s2"},
		{"a limit", "?limit=1", "s3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := strings.Join(o.list("GET /admin/events"+tc.query).ids(), " "); got != tc.want {
				t.Errorf("events = %q, want %q", got, tc.want)
			}
		})
	}
	want := `200 {"data":[{"id":"n1-u4","received_at":"2026-03-01T12:00:06Z","kind":"uplink","source":"generic","account":7,` +
		`"state":"quarantined","reason":"because of bad","raw":"bad & <worse>","outcome":"","notes":[]}],"meta":{"next":""}}`
	if got := o.call("GET /admin/events?state=quarantined", ""); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if raw := o.list("GET /admin/events?kind=sms&state=done").Data[0]["raw"]; raw != "ff" {
		t.Errorf("raw data that is not UTF-8 = %q, want ff", raw)
	}
}

func TestPagesOfEventsAreComplete(t *testing.T) {
	o := newOperatorAPIWithEvents(t)
	for _, query := range []string{"?limit=1", "?limit=2", "?limit=3", "?limit=6", "?limit=7", "?limit=2&state=done", "?kind=uplink&limit=3"} {
		want := o.list("GET /admin/events" + strings.NewReplacer("limit=1", "", "limit=2", "", "limit=3", "", "limit=6", "", "limit=7", "").Replace(query)).ids()
		var paged []string
		for cursor := ""; ; {
			page := o.list("GET /admin/events" + query + "&cursor=" + cursor)
			paged = append(paged, page.ids()...)
			if cursor = page.Meta.Next; cursor == "" {
				break
			}
			if len(paged) > 20 {
				t.Fatalf("%s: the list does not end", query)
			}
		}
		if !slices.Equal(paged, want) {
			t.Errorf("events of all pages of %s = %q, want %q", query, paged, want)
		}
	}
}

// replayAnswer returns the answer to a replay of events without effects.
func replayAnswer(count int) string {
	return fmt.Sprintf(`200 {"count":%d,"examined":%[1]d,"rules":false,"readings":{"added":0,"changed":0,"unchanged":0,"stays":0},"deliveries":0,"alarms":0}`, count)
}

func TestEventsAreReplayed(t *testing.T) {
	o := newOperatorAPIWithEvents(t)
	o.p.acceptAll()
	for _, tc := range []struct{ name, body, want string }{
		{"no filter", `{}`, `422 {"errors":{"ids":["Give ids or at least one filter."]},"message":"The given data was invalid."}`},
		{"no ids", `{"ids":[]}`, `422 {"errors":{"ids":["Give ids or at least one filter."]},"message":"The given data was invalid."}`},
		{"only options", `{"dry_run":true,"limit":5}`, `422 {"errors":{"ids":["Give ids or at least one filter."]},"message":"The given data was invalid."}`},
		{"ids that are not a list", `{"ids":"n1-u4"}`, `422 {"errors":{"ids":["The ids must be an array.","Give ids or at least one filter."]},"message":"The given data was invalid."}`},
		{"an unknown state", `{"state":"lost"}`, `422 {"errors":{"state":["The state must be done or quarantined or unrouted or pending, not \"lost\"."]},"message":"The given data was invalid."}`},
		{"a decoder without devices", `{"decoder":"d9"}`, `422 {"errors":{"decoder":["There is no device with the decoder \"d9\"."]},"message":"The given data was invalid."}`},
		{"an unknown relay", `{"relay":"g9"}`, `422 {"errors":{"relay":["There is no relay \"g9\"."]},"message":"The given data was invalid."}`},
		{"invalid JSON", `{`, `422 {"message":"Invalid JSON."}`},
		{"a dry run", `{"state":"quarantined","dry_run":true}`, `200 {"count":1,"examined":0,` +
			`"events":{"done":0,"quarantined":0,"differ":0},"readings":{"added":0,"changed":0,"unchanged":0,"stays":0},"data":[],"more":false,"rules":false}`},
		{"another reason", `{"reason":"because of good"}`, replayAnswer(0)},
		{"a reason, with rules", `{"reason":"BECAUSE of bad","rules":true}`, strings.Replace(replayAnswer(1), `"rules":false`, `"rules":true`, 1)},
		{"an unknown id", `{"ids":["n1-u99","n9-u1"]}`, replayAnswer(0)},
		{"ids of two kinds, one twice", `{"ids":["n1-u4","n1-s2","n1-u4"]}`, replayAnswer(2)},
		{"events that are no longer quarantined", `{"state":"quarantined"}`, replayAnswer(0)},
		{"an account as a number", `{"account":7,"state":"done"}`, replayAnswer(6)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := o.call("POST /admin/events/replay", tc.body)
			if got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := o.list("GET /admin/events?state=done").ids(); len(got) != 6 {
		t.Errorf("processed events = %q, want 6", got)
	}
}

// A decoder selects events by devices, a relay by destinations.
func TestAReplayIsLimitedToADecoderOrARelay(t *testing.T) {
	o, ctx := newOperatorAPI(t), t.Context()
	o.mustApply(acme+"  - {name: globex, relays: {geo: [{id: wide, prefix: \"44\", action: black_hole}]}}\n", "")
	relaytest.NoError(t, o.db.Devices.CreateDevice(ctx, 1, iot.Device{ID: "dev1", Identifier: "24e124136b502217", DecoderID: "d1"}, nil))
	matchDecoder, err := o.surface.matchDecoder(ctx, 0, "d1")
	relaytest.NoError(t, err)
	for identifiers, want := range map[string]bool{
		"24e124136b502217":             true,
		"a b c d e f 24e124136b502217": true,
		"24e124136b502218":             false,
		"":                             false,
	} {
		relaytest.Equal(t, identifiers, matchDecoder(1, strings.Fields(identifiers)), want)
	}
	relaytest.Equal(t, "the device of another account", matchDecoder(2, []string{"24e124136b502217"}), false)
	for _, tc := range []struct {
		relay, destinations string
		want                bool
	}{
		{"v1", "447860000001", true},
		{"v1", "33", false},
		{"g1", "447800012345", true},
		{"g1", "447860000001", false}, // the relay of the virtual number takes the message
		{"wide", "447800012345", false},
		{"wide", "447800012345 4490", true},
		{"wide", "33", false},
	} {
		matchRelay, err := o.surface.matchRelay(ctx, 0, tc.relay)
		relaytest.NoError(t, err)
		relaytest.Equal(t, tc.relay+" matches "+tc.destinations, matchRelay(1, strings.Fields(tc.destinations)), tc.want)
	}
}

func TestUnknownCursorsAreRefused(t *testing.T) {
	o := newOperatorAPI(t)
	for _, cursor := range []string{"x", "u", "u0", "u-1", "u1.u2", "u1.", "u01", "s1.u1", "u99999999999999999999", "%00"} {
		if got := o.call("GET /admin/events?cursor="+cursor, ""); !strings.HasPrefix(got, `422 {"errors":{"cursor":`) {
			t.Errorf("answer for the cursor %q = %s, want 422", cursor, got)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	for _, s := range []string{"", "u1", "u12.s3", "s1.u1", "u1.u1", "x", "u18446744073709551615"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := parsePosition(s); ok && p.String() != s {
			t.Fatalf("position %q is formatted as %q", s, p.String())
		}
	})
}
