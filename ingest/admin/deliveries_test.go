package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func (o *office) deliver(id, target string, state outbox.State) {
	o.t.Helper()
	at := o.now.Add(time.Duration(len(id)) * time.Second)
	d := outbox.Delivery{ID: id, Account: 7, Kind: outbox.KindRelay, Relay: "g1", MessageID: "m-" + id, CreatedAt: at, Request: &outbox.Request{Method: "GET", URL: target}}
	_, err := o.db.Deliveries.Create(o.t.Context(), []outbox.Delivery{d}, at.Add(time.Minute))
	relaytest.NoError(o.t, err)
	if state == outbox.Queued {
		return
	}
	_, err = o.db.Deliveries.Finish(o.t.Context(), []outbox.Outcome{{
		ID: id, Account: 7, State: state, Reason: "gone",
		Attempt: outbox.Attempt{At: at, Duration: 1500 * time.Microsecond, Status: 410, Error: "410 Gone", Response: "<no>"},
	}})
	relaytest.NoError(o.t, err)
}

func TestDeliveriesAreListedAndReplayed(t *testing.T) {
	o := newOffice(t)
	o.deliver("a", "https://h/?token=secret&n=1", outbox.Dead)
	o.deliver("bb", "https://h/ok", outbox.Delivered)
	o.deliver("ccc", "https://h/", outbox.Queued)
	want := `200 {"data":[{"id":"a","account":7,"kind":"relay","relay":"g1","message_id":"m-a","target":"https://h/?token=***&n=***","state":"dead",` +
		`"reason":"gone","created_at":"2026-03-01T12:00:01Z","next_attempt_at":null,"attempts":[{"at":"2026-03-01T12:00:01Z","duration_ms":1.5,` +
		`"status":410,"error":"410 Gone","reason":"","response":"<no>"}]}],"meta":{"next":""}}`
	if got := o.ask("GET /admin/deliveries?state=dead", ""); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	var paged []string
	for cursor := ""; len(paged) < 10; {
		page := o.list("GET /admin/deliveries?limit=1&cursor=" + cursor)
		paged = append(paged, page.ids()...)
		if cursor = page.Meta.Next; cursor == "" {
			break
		}
	}
	if strings.Join(paged, " ") != "ccc bb a" {
		t.Errorf("paged %q", paged)
	}
	const nothing = `422 {"errors":{"ids":["Give ids or at least one filter."]},"message":"The given data was invalid."}`
	for _, tc := range []struct{ name, body, want string }{
		{"nothing selected", `{}`, nothing},
		{"the delivered alone select nothing", `{"include_delivered":true}`, nothing},
		{"only the dead", `{"account":7}`, `{"count":1}`},
		{"the dead once", `{"account":7}`, `{"count":0}`},
		{"the delivered when asked for", `{"ids":["bb"],"include_delivered":true}`, `{"count":1}`},
		{"of another account", `{"account":8,"include_delivered":true}`, `{"count":0}`},
	} {
		if got := o.ask("POST /admin/deliveries/replay", tc.body); !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if got := o.list("GET /admin/deliveries?state=queued").ids(); len(got) != 3 {
		t.Errorf("queued: %q", got)
	}
}

func TestDeliveriesThatWaitForABreakerNameIt(t *testing.T) {
	o := newOffice(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o.deliver("a", "https://h/?token=secret", outbox.Queued)
	o.deliver("b", "https://h/", outbox.Queued)
	_, err := o.db.Deliveries.Finish(t.Context(), []outbox.Outcome{{
		ID: "a", Account: 7, State: outbox.Queued, Reason: "its endpoint fails: answered 503", Endpoint: "e1", ParkedUntil: at.Add(time.Hour), Uncounted: true,
	}})
	relaytest.NoError(t, err)
	relaytest.NoError(t, o.cache.Breakers().Open(t.Context(), outbox.Breaker{
		Endpoint: "e1", Account: 7, Relay: "g1", Target: "https://h/?token=***", Reason: "answered 503", OpenedAt: at, ProbeAt: at.Add(5 * time.Second), Probes: 2,
	}))
	const open = `200 {"data":[{"endpoint":"e1","account":7,"relay":"g1","target":"https://h/?token=***","reason":"answered 503",` +
		`"opened_at":"2026-03-01T12:00:00Z","probe_at":"2026-03-01T12:00:05Z","probes":2,"waiting":1}]}`
	if got := o.ask("GET /admin/breakers", ""); got != open {
		t.Errorf("\n got %s\nwant %s", got, open)
	}
	relaytest.Equal(t, "the deliveries that wait for a breaker", o.list("GET /admin/deliveries?waits_for=breaker").ids(), []string{"a"})
	got := o.ask("GET /admin/deliveries?waits_for=breaker", "")
	for _, want := range []string{`"waits_for":"breaker"`, `"endpoint":"`, `"state":"queued"`, `"next_attempt_at":null`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s has no %s", got, want)
		}
	}
	if got := o.ask("DELETE /admin/breakers/e1", ""); !strings.HasPrefix(got, "204") {
		t.Errorf("closed: %s", got)
	}
	if got := o.ask("GET /admin/breakers", ""); got != `200 {"data":[]}` {
		t.Errorf("after it: %s", got)
	}
}

func TestSelectionsAreChecked(t *testing.T) {
	o := newOffice(t)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "search_ms=0": "search_ms", "search_ms=5001": "search_ms", "state=lost": "state", "account=acme": "account",
		"from=yesterday": "from", "to=2026-13-01": "to", "kind=post": "kind", "waits_for=luck": "waits_for",
	} {
		if got := o.ask("GET /admin/deliveries?"+query, ""); !strings.HasPrefix(got, `422 {"errors":{"`+field+`":`) {
			t.Errorf("%s: %s", query, got)
		}
	}
}
