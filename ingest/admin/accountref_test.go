package admin

import (
	"strings"
	"testing"
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
			if !strings.HasPrefix(named, "200 ") || named != numbered {
				t.Errorf("by name %s\nby id %s", named, numbered)
			}
			if request.body != "" {
				asNumber := o.ask(request.route, strings.ReplaceAll(request.body, `"ACCOUNT"`, "1"))
				if asNumber != named {
					t.Errorf("as a number %s\nby name %s", asNumber, named)
				}
			}
			if got := ask("nobody"); !strings.HasPrefix(got, "422 ") || !strings.Contains(got, `"account":["want an account's name or id, got \"nobody\""]`) {
				t.Errorf("an unknown name: %s", got)
			}
		})
	}
}
