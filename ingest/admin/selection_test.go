package admin

import (
	"context"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// FuzzSelection checks that parameters are refused by field or within their bounds, and that a
// replay never selects all records.
func FuzzSelection(f *testing.F) {
	f.Add("state=dead&limit=5", `{"ids":["a"],"account":7}`)
	f.Add("from=2026-01-01T00:00:00Z", `{"to":"2026-01-01 00:00:00","dry_run":"x"}`)
	f.Add("limit=-1&account=x", `{"ids":{"a":1},"limit":{},"cursor":[]}`)
	f.Add("states=dead", `{"account":7,"states":"dead"}`)
	f.Add("", `null`)
	app, surface := fiber.New(), New(Deps{Accounts: noAccounts{}, Now: time.Now})
	f.Fuzz(func(t *testing.T, query, body string) {
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		defer app.ReleaseCtx(c)
		c.Request().URI().SetQueryString(query)
		c.Request().SetBodyString(body)
		s, err := surface.selectionOf(c)
		if err != nil {
			return
		}
		d, limit := s.deliveryFilter(), s.limit()
		s.option("cursor")
		s.flag("dry_run")
		hasFilter := len(d.IDs) > 0 || d.State != "" || d.Account != 0 || d.Kind != "" || d.Relay != "" || d.Target != "" ||
			!d.From.IsZero() || !d.To.IsZero() || d.Query != ""
		s.requireFilter()
		err = s.Err()
		if err != nil {
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), relay.KindInvalid)
			if len(relay.FieldsOf(err)) == 0 {
				t.Fatalf("error without a field: %v", err)
			}
			return
		}
		if limit < 1 || limit > maxLimit {
			t.Fatalf("limit = %d, want 1 to %d", limit, maxLimit)
		}
		if !hasFilter && s.text("account") == "" {
			t.Fatal("no error for a selection without a filter")
		}
	})
}

// A misspelt field or a field of another type must not widen the selection.
func TestSelectionsRefuseUnknownParameters(t *testing.T) {
	o := newOperatorAPI(t)
	for _, tc := range []struct{ line, body, want string }{
		{"GET /admin/deliveries?states=done&x=1", "", `"states":["This parameter is unknown: the operation takes account, state, kind, waits_for, relay, number, target, reason, from, to, q, limit, cursor, search_ms."]`},
		{"GET /admin/accounts?name=acme", "", `"name":["This parameter is unknown: the operation takes no parameters."]`},
		{"GET /admin/breakers?relay=g1", "", `"relay":["This parameter is unknown`},
		{"GET /admin/gateways?node=n1", "", `"node":["This parameter is unknown`},
		{"GET /admin/users?role=admin", "", `"role":["This parameter is unknown`},
		{"GET /admin/deliveries?limit=%2B5", "", `"limit":["The limit must be an integer."]`},
		{"GET /admin/devices?alarmed=T", "", `"alarmed":["The alarmed must be true or false."]`},
		{"POST /admin/deliveries/replay?account=7&states=dead", "", `"states":["This parameter is unknown`},
		{"POST /admin/deliveries/replay", `{"account":7,"states":"dead"}`, `"states":["This field is unknown."]`},
		{"POST /admin/deliveries/replay", `{"account":7,"include_delivered":"true"}`, `"include_delivered":["The include delivered must be true or false."]`},
		{"POST /admin/deliveries/replay", `{"account":7,"state":["dead"]}`, `"state":["The state must be a string."]`},
		{"POST /admin/events/replay", `{"device":" "}`, `"device":["The device must not be blank."]`},
		{"POST /admin/events/replay", `{"account":7,"dry_run":"1"}`, `"dry_run":["The dry run must be true or false."]`},
		{"POST /admin/events/replay", `{"account":7,"dry_run":true,"limit":"5"}`, `"limit":["The limit must be an integer."]`},
		{"POST /admin/messages/resend", `{"account":7,"ids":["1"],"states":"unknown"}`, `"states":["This field is unknown."]`},
		{"POST /admin/users?nmae=eve", `{"name":"eve","role":"viewer","password":"a-long-password"}`, `"nmae":["This parameter is unknown`},
		{"DELETE /admin/gateways/n2?dry_run=true", "", `"dry_run":["This parameter is unknown`},
		{"PUT /admin/inventory?dryrun=true", `{"accounts":[]}`, `"dryrun":["This parameter is unknown: the operation takes dry_run, prune, allow_removals, adopt, reset, account."]`},
	} {
		got := o.call(tc.line, tc.body)
		answertest.HasPrefix(t, tc.line, got, "422 ")
		answertest.Contains(t, tc.line, got, tc.want)
	}
}

// noAccounts is a store without accounts.
type noAccounts struct{ *account.Store }

func (noAccounts) AccountByName(context.Context, string) (account.Account, error) {
	return account.Account{}, relay.Errorf(relay.KindNotFound, "no account")
}
