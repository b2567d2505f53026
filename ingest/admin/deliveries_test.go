package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// createDelivery stores a delivery of account 7 with a state.
func (o *operatorAPI) createDelivery(id, target string, state outbox.State) {
	o.t.Helper()
	createdAt := o.now.Add(time.Duration(len(id)) * time.Second)
	d := outbox.Delivery{ID: id, Account: 7, Kind: outbox.KindRelay, Relay: "g1", MessageID: "m-" + id, CreatedAt: createdAt, Request: &outbox.Request{Method: "GET", URL: target}}
	_, err := o.db.Deliveries.Create(o.t.Context(), []outbox.Delivery{d}, createdAt.Add(time.Minute))
	relaytest.NoError(o.t, err)
	if state == outbox.Queued {
		return
	}
	_, err = o.db.Deliveries.Finish(o.t.Context(), []outbox.Outcome{{
		ID: id, Account: 7, State: state, Reason: "gone",
		Attempt: outbox.Attempt{At: createdAt, Duration: 1500 * time.Microsecond, Status: 410, Error: "410 Gone", Response: "<no>"},
	}})
	relaytest.NoError(o.t, err)
}

func TestDeliveriesAreListedAndReplayed(t *testing.T) {
	o := newOperatorAPI(t)
	o.createDelivery("a", "https://h/?token=secret&n=1", outbox.Dead)
	o.createDelivery("bb", "https://h/ok", outbox.Delivered)
	o.createDelivery("ccc", "https://h/", outbox.Queued)
	want := `200 {"data":[{"id":"a","account":7,"kind":"relay","relay":"g1","message_id":"m-a","target":"https://h/?token=***&n=***","state":"dead",` +
		`"reason":"gone","created_at":"2026-03-01T12:00:01Z","next_attempt_at":null,"attempts":[{"at":"2026-03-01T12:00:01Z","duration_ms":1.5,` +
		`"status":410,"error":"410 Gone","reason":"","response":"<no>"}]}],"meta":{"next":""}}`
	if got := o.call("GET /admin/deliveries?state=dead", ""); got != want {
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
		t.Errorf("ids of all pages = %q, want ccc bb a", paged)
	}
	const refused = `422 {"errors":{"ids":["Give ids or at least one filter."]},"message":"The given data was invalid."}`
	for _, tc := range []struct{ name, body, want string }{
		{"no filter", `{}`, refused},
		{"include_delivered without a filter", `{"include_delivered":true}`, refused},
		{"dead deliveries only", `{"account":7}`, `{"count":1}`},
		{"deliveries that are already queued", `{"account":7}`, `{"count":0}`},
		{"a delivered delivery with include_delivered", `{"ids":["bb"],"include_delivered":true}`, `{"count":1}`},
		{"another account", `{"account":8,"include_delivered":true}`, `{"count":0}`},
	} {
		if got := o.call("POST /admin/deliveries/replay", tc.body); !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s: answer = %s, want %s", tc.name, got, tc.want)
		}
	}
	if got := o.list("GET /admin/deliveries?state=queued").ids(); len(got) != 3 {
		t.Errorf("queued deliveries = %q, want 3", got)
	}
}

func TestOpenBreakersAndTheirDeliveriesAreListed(t *testing.T) {
	o := newOperatorAPI(t)
	openedAt := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o.createDelivery("a", "https://h/?token=secret", outbox.Queued)
	o.createDelivery("b", "https://h/", outbox.Queued)
	_, err := o.db.Deliveries.Finish(t.Context(), []outbox.Outcome{{
		ID: "a", Account: 7, State: outbox.Queued, Reason: "its endpoint fails: answered 503", Endpoint: "e1", ParkedUntil: openedAt.Add(time.Hour), Uncounted: true,
	}})
	relaytest.NoError(t, err)
	relaytest.NoError(t, o.cache.Breakers().Open(t.Context(), outbox.Breaker{
		Endpoint: "e1", Account: 7, Relay: "g1", Target: "https://h/?token=***", Reason: "answered 503", OpenedAt: openedAt, ProbeAt: openedAt.Add(5 * time.Second), Probes: 2,
	}))
	const open = `200 {"data":[{"endpoint":"e1","account":7,"relay":"g1","target":"https://h/?token=***","reason":"answered 503",` +
		`"opened_at":"2026-03-01T12:00:00Z","probe_at":"2026-03-01T12:00:05Z","probes":2,"waiting":1}]}`
	if got := o.call("GET /admin/breakers", ""); got != open {
		t.Errorf("\n got %s\nwant %s", got, open)
	}
	relaytest.Equal(t, "the deliveries that wait for a breaker", o.list("GET /admin/deliveries?waits_for=breaker").ids(), []string{"a"})
	got := o.call("GET /admin/deliveries?waits_for=breaker", "")
	for _, want := range []string{`"waits_for":"breaker"`, `"endpoint":"`, `"state":"queued"`, `"next_attempt_at":null`} {
		if !strings.Contains(got, want) {
			t.Errorf("answer = %s, want it to contain %s", got, want)
		}
	}
	if got := o.call("DELETE /admin/breakers/e1", ""); !strings.HasPrefix(got, "204") {
		t.Errorf("answer to closing = %s, want 204", got)
	}
	if got := o.call("GET /admin/breakers", ""); got != `200 {"data":[]}` {
		t.Errorf("breakers after closing = %s, want none", got)
	}
}

func TestInvalidFiltersAreRefused(t *testing.T) {
	o := newOperatorAPI(t)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "search_ms=0": "search_ms", "search_ms=5001": "search_ms", "state=lost": "state", "account=acme": "account",
		"from=yesterday": "from", "to=2026-13-01": "to", "kind=post": "kind", "waits_for=luck": "waits_for",
	} {
		if got := o.call("GET /admin/deliveries?"+query, ""); !strings.HasPrefix(got, `422 {"errors":{"`+field+`":`) {
			t.Errorf("answer for %s = %s, want 422 for %s", query, got, field)
		}
	}
}
