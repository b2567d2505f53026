package admin

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

const (
	geoRelay = `"account":1,"account_name":"acme","kind":"geo","id":"g1","number":"4478","action":"http_get","parameters":["https://u:p@a.example/in/key?m=%m&k=1"],` +
		`"filter":"","iccid":"","pace":{"per_second":2},"updated_at":"2026-03-01T12:00:00Z"`
	mailRelay = `{"account":1,"account_name":"acme","kind":"vmn","id":"v1","number":"447860000001","action":"email","parameters":["ops@example.com"],` +
		`"filter":"text matches \"^A\"","iccid":"","pace":{},"updated_at":"2026-03-01T12:00:00Z"}`
	otherRelay = `{"account":2,"account_name":"globex","kind":"geo","id":"g1","number":"33","action":"black_hole","parameters":[],"filter":"","iccid":"","pace":{},"updated_at":"2026-03-01T12:00:00Z"}`
	geoActions = `{"name":"black_hole","description":"Discard messages","takes":""},{"name":"http_post","description":"Forward messages to URLs with HTTP POST","takes":"urls"},` +
		`{"name":"http_get","description":"Forward messages to URLs with HTTP GET","takes":"urls"},{"name":"email","description":"Forward messages to e-mail addresses","takes":"addresses"}`
)

func newOperatorAPIWithRelays(t *testing.T) *operatorAPI {
	t.Helper()
	o := newOperatorAPI(t)
	o.mustApply(`{"document":"site-a","accounts":[{"name":"acme","relays":{
		"geo":[{"id":"g1","prefix":"4478","action":"http_get","parameters":["https://u:p@a.example/in/key?m=%m&k=1"],"pace":{"per_second":2}}],
		"vmn":[{"id":"v1","number":"447860000001","action":"email","parameters":["ops@example.com"],"filter":"text matches \"^A\""}]}},
		{"name":"globex","permissions":["mvno"],"relays":{"geo":[{"id":"g1","prefix":"33","action":"black_hole"}]}}]}`, "")
	return o
}

func TestRelaysAreListed(t *testing.T) {
	o := newOperatorAPIWithRelays(t)
	page := func(nextCursor string, relays ...string) string {
		return `200 {"data":[` + strings.Join(relays, ",") + `],"meta":{"next":"` + nextCursor + `"}}`
	}
	invalid := func(fields string) string {
		return `422 {"errors":{` + fields + `},"message":"The given data was invalid."}`
	}
	const geo, path = `{` + geoRelay + `}`, "/admin/relays/geo/g1"
	detail := func(relay string) string {
		return `200 {"data":{` + relay + `,"document":"site-a","actions":[` + geoActions + `]}}`
	}
	for _, tc := range []struct{ name, line, body, want string }{
		{"all relays", "GET /admin/relays", "", page("", geo, mailRelay, otherRelay)},
		{"relays of an account", "GET /admin/relays?account=globex", "", page("", otherRelay)},
		{"relays of a kind", "GET /admin/relays?kind=vmn", "", page("", mailRelay)},
		{"a page", "GET /admin/relays?limit=1&kind=geo", "", page("MSBnZW8gZzE", geo)},
		{"the next page", "GET /admin/relays?limit=1&kind=geo&cursor=MSBnZW8gZzE", "", page("", otherRelay)},
		{"a string in a parameter", "GET /admin/relays?q=IN%2FKEY", "", page("", geo)},
		{"a string without a match", "GET /admin/relays?q=elsewhere", "", page("")},
		{"a cursor of another list", "GET /admin/relays?cursor=1", "", invalid(`"cursor":["This is not a cursor of this list."]`)},
		{"a relay", "GET " + path + "?account=acme", "", detail(geoRelay)},
		{"a relay without an account", "GET " + path, "", invalid(`"account":["The account field is required."]`)},
		{"an unknown relay", "GET /admin/relays/vmn/g1?account=1", "", `404 {"message":"Not found."}`},
		{"a relay of another account", "GET /admin/relays/vmn/v1?account=2", "", `404 {"message":"Not found."}`},
	} {
		relaytest.Equal(t, tc.name, o.call(tc.line, tc.body), tc.want)
	}
}

// An apply keeps values that were changed over the admin API or over REST.
func TestAnInventoryKeepsAChangedRelay(t *testing.T) {
	o := newOperatorAPIWithRelays(t)
	const document = `{"document":"site-a","accounts":[{"name":"acme","relays":{"geo":[{"id":"g1","prefix":"4479","action":"http_get","parameters":["https://b.example/"]}]}}]}`
	_, err := o.surface.Relays.Change(t.Context(), 1, inbound.Geographic, "g1", inbound.Change{Action: inbound.Action{Name: inbound.Email, Parameters: []string{"a@example.com"}}})
	relaytest.NoError(t, err)
	for _, tc := range []struct{ name, query, number, action string }{
		{"an apply", "", "4479", "email"},
		{"an apply that resets relays", "?reset=relays", "4479", "http_get"},
	} {
		o.mustApply(document, tc.query)
		if got := o.call("GET /admin/relays/geo/g1?account=1", ""); !strings.Contains(got, `"number":"`+tc.number+`","action":"`+tc.action+`"`) {
			t.Errorf("relay after %s = %s, want the number %s and the action %s", tc.name, got, tc.number, tc.action)
		}
	}
}

// URLs of relays contain secrets of endpoints.
func TestURLsOfRelaysAreHiddenByRole(t *testing.T) {
	o := newOperatorAPIWithRelays(t)
	viewer, customer := o.signIn(user.Viewer, 0), o.signIn(user.Account, 2)
	for _, tc := range []struct {
		session        userSession
		line, body     string
		want, hidden   string
		status, relays int
	}{
		{viewer, "GET /admin/relays", "", `"parameters":["https://u:***@a.example/…"]`, "key", 200, 3},
		{viewer, "GET /admin/relays?q=in%2Fkey", "", `"data":[]`, "a.example", 200, 0},
		{viewer, "GET /admin/relays/geo/g1?account=1", "", `"hidden":true`, "key", 200, 1},
		{customer, "GET /admin/relays", "", `"account":2`, "acme", 200, 1},
		{customer, "GET /admin/relays/geo/g1", "", `"name":"mvno"`, "a.example", 200, 1},
		{customer, "GET /admin/relays/geo/g1?account=1", "", "A user with the role account may see only its own account.", "a.example", 403, 0},
	} {
		status, body := tc.session.send(tc.line, tc.body)
		label := tc.line + " as " + tc.session.name
		relaytest.Equal(t, label+": the status", status, tc.status)
		answertest.Contains(t, label, body, tc.want)
		answertest.NotContains(t, label, body, tc.hidden)
		relaytest.Equal(t, label+": the number of relays", strings.Count(body, `"kind":`), tc.relays)
	}
}
