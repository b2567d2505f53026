package admin

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAccountsAreNamedOrNumbered(t *testing.T) {
	o := newOffice(t)
	o.applied(acme+"  - {name: globex}\n", "")
	for _, request := range []struct{ route, body string }{
		{"GET /admin/credit?account=ACCOUNT", ""},
		{"GET /admin/messages?account=ACCOUNT", ""},
		{"GET /admin/rules?account=ACCOUNT", ""},
		{"GET /admin/alarms?account=ACCOUNT", ""},
		{"GET /admin/deliveries?account=ACCOUNT", ""},
		{"GET /admin/events?account=ACCOUNT", ""},
		{"POST /admin/events/replay", `{"account":"ACCOUNT"}`},
		{"POST /admin/deliveries/replay", `{"account":"ACCOUNT"}`},
	} {
		t.Run(request.route, func(t *testing.T) {
			ask := func(account string) string {
				return o.ask(strings.ReplaceAll(request.route, "ACCOUNT", account), strings.ReplaceAll(request.body, "ACCOUNT", account))
			}
			named, numbered := ask("acme"), ask("1")
			answertest.Begins(t, "the answer by name", named, "200 ")
			relaytest.Equal(t, "the answer by id", numbered, named)
			if request.body != "" {
				asNumber := o.ask(request.route, strings.ReplaceAll(request.body, `"ACCOUNT"`, "1"))
				if asNumber != named {
					t.Errorf("as a number %s\nby name %s", asNumber, named)
				}
			}
			unknown := ask("nobody")
			answertest.Begins(t, "the answer for an unknown name", unknown, "422 ")
			answertest.Contains(t, "the answer for an unknown name", unknown, `"account":["There is no account named \"nobody\"."]`)
		})
	}
}
