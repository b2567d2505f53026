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

func officeWithRelays(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	o.applied(`{"document":"site-a","accounts":[{"name":"acme","relays":{
		"geo":[{"id":"g1","prefix":"4478","action":"http_get","parameters":["https://u:p@a.example/in/key?m=%m&k=1"],"pace":{"per_second":2}}],
		"vmn":[{"id":"v1","number":"447860000001","action":"email","parameters":["ops@example.com"],"filter":"text matches \"^A\""}]}},
		{"name":"globex","permissions":["mvno"],"relays":{"geo":[{"id":"g1","prefix":"33","action":"black_hole"}]}}]}`, "")
	return o
}

func TestRelaysAreListedAndChanged(t *testing.T) {
	o := officeWithRelays(t)
	page := func(next string, relays ...string) string {
		return `200 {"data":[` + strings.Join(relays, ",") + `],"meta":{"next":"` + next + `"}}`
	}
	invalid := func(fields string) string {
		return `422 {"errors":{` + fields + `},"message":"The given data was invalid."}`
	}
	const geo, one = `{` + geoRelay + `}`, "/admin/relays/geo/g1"
	shown := func(relay string) string {
		return `200 {"data":{` + relay + `,"document":"site-a","actions":[` + geoActions + `]}}`
	}
	for _, tc := range []struct{ name, line, body, want string }{
		{"all", "GET /admin/relays", "", page("", geo, mailRelay, otherRelay)},
		{"of an account", "GET /admin/relays?account=globex", "", page("", otherRelay)},
		{"of a kind", "GET /admin/relays?kind=vmn", "", page("", mailRelay)},
		{"a page", "GET /admin/relays?limit=1&kind=geo", "", page("MSBnZW8gZzE", geo)},
		{"the next page", "GET /admin/relays?limit=1&kind=geo&cursor=MSBnZW8gZzE", "", page("", otherRelay)},
		{"with a text in a parameter", "GET /admin/relays?q=IN%2FKEY", "", page("", geo)},
		{"with a text in none", "GET /admin/relays?q=elsewhere", "", page("")},
		{"a cursor of another list", "GET /admin/relays?cursor=1", "", invalid(`"cursor":["This is not a cursor of this list."]`)},
		{"one", "GET " + one + "?account=acme", "", shown(geoRelay)},
		{"one of no account", "GET " + one, "", invalid(`"account":["The account field is required."]`)},
		{"one that is none", "GET /admin/relays/vmn/g1?account=1", "", `404 {"message":"Not found."}`},
		{"one of another account", "GET /admin/relays/vmn/v1?account=2", "", `404 {"message":"Not found."}`},
	} {
		relaytest.Equal(t, tc.name, o.ask(tc.line, tc.body), tc.want)
	}
}

// An apply keeps what was changed, as it keeps what accounts change over REST.
func TestAnInventoryKeepsAChangedRelay(t *testing.T) {
	o := officeWithRelays(t)
	const document = `{"document":"site-a","accounts":[{"name":"acme","relays":{"geo":[{"id":"g1","prefix":"4479","action":"http_get","parameters":["https://b.example/"]}]}}]}`
	_, err := o.surface.Relays.Change(t.Context(), 1, inbound.Geographic, "g1", inbound.Change{Action: inbound.Action{Name: inbound.Email, Parameters: []string{"a@example.com"}}})
	relaytest.NoError(t, err)
	for _, tc := range []struct{ name, query, number, action string }{
		{"an apply", "", "4479", "email"},
		{"an apply that resets relays", "?reset=relays", "4479", "http_get"},
	} {
		o.applied(document, tc.query)
		if got := o.ask("GET /admin/relays/geo/g1?account=1", ""); !strings.Contains(got, `"number":"`+tc.number+`","action":"`+tc.action+`"`) {
			t.Errorf("after %s: %s", tc.name, got)
		}
	}
}

// URLs of relays hold the secrets of their endpoints.
func TestRelaysByRole(t *testing.T) {
	o := officeWithRelays(t)
	viewer, customer := o.as(user.Viewer, 0), o.as(user.Account, 2)
	for _, tc := range []struct {
		who            visitor
		line, body     string
		has, hasNot    string
		status, relays int
	}{
		{viewer, "GET /admin/relays", "", `"parameters":["https://u:***@a.example/…"]`, "key", 200, 3},
		{viewer, "GET /admin/relays?q=in%2Fkey", "", `"data":[]`, "a.example", 200, 0},
		{viewer, "GET /admin/relays/geo/g1?account=1", "", `"hidden":true`, "key", 200, 1},
		{customer, "GET /admin/relays", "", `"account":2`, "acme", 200, 1},
		{customer, "GET /admin/relays/geo/g1", "", `"name":"mvno"`, "a.example", 200, 1},
		{customer, "GET /admin/relays/geo/g1?account=1", "", "The role account sees its own account only.", "a.example", 403, 0},
	} {
		status, body := tc.who.send(tc.line, tc.body)
		what := tc.line + " as " + tc.who.name
		relaytest.Equal(t, what+": the status", status, tc.status)
		answertest.Contains(t, what, body, tc.has)
		answertest.Lacks(t, what, body, tc.hasNot)
		relaytest.Equal(t, what+": the number of relays", strings.Count(body, `"kind":`), tc.relays)
	}
}
