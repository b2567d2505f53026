package admin

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAccountsAreSelectedByNameOrID(t *testing.T) {
	o := newOperatorAPI(t)
	o.mustApply(acme+"  - {name: globex}\n", "")
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
			call := func(account string) string {
				return o.call(strings.ReplaceAll(request.route, "ACCOUNT", account), strings.ReplaceAll(request.body, "ACCOUNT", account))
			}
			byName, byID := call("acme"), call("1")
			answertest.HasPrefix(t, "the answer by name", byName, "200 ")
			relaytest.Equal(t, "the answer by id", byID, byName)
			if request.body != "" {
				byNumber := o.call(request.route, strings.ReplaceAll(request.body, `"ACCOUNT"`, "1"))
				if byNumber != byName {
					t.Errorf("answer by a JSON number = %s\nwant %s", byNumber, byName)
				}
			}
			unknown := call("nobody")
			answertest.HasPrefix(t, "the answer for an unknown name", unknown, "422 ")
			answertest.Contains(t, "the answer for an unknown name", unknown, `"account":["There is no account named \"nobody\"."]`)
		})
	}
}
