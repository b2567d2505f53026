package admin

import (
	"context"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// FuzzSelection holds that whatever is asked for is either refused by field or
// within its bounds, and that a replay never selects everything by accident.
func FuzzSelection(f *testing.F) {
	f.Add("state=dead&limit=5", `{"ids":["a"],"account":7}`)
	f.Add("from=2026-01-01T00:00:00Z", `{"to":"2026-01-01 00:00:00","dry_run":"x"}`)
	f.Add("limit=-1&account=x", `{"ids":{"a":1},"limit":{},"cursor":[]}`)
	f.Add("", `null`)
	app, surface := fiber.New(), New(Deps{Accounts: noAccounts{}})
	f.Fuzz(func(t *testing.T, query, body string) {
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		defer app.ReleaseCtx(c)
		c.Request().URI().SetQueryString(query)
		c.Request().SetBodyString(body)
		s, err := surface.selectionOf(c)
		if err != nil {
			return
		}
		d, limit := s.deliveries(), s.limit()
		s.cursor()
		s.flag("dry_run")
		selects := len(d.IDs) > 0 || d.State != "" || d.Account != 0 || d.Kind != "" || d.Relay != "" || d.Target != "" ||
			!d.From.IsZero() || !d.To.IsZero() || d.Query != ""
		s.require()
		err = s.Err()
		if err != nil {
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), relay.KindInvalid)
			if len(relay.FieldsOf(err)) == 0 {
				t.Fatalf("the error names no field: %v", err)
			}
			return
		}
		if limit < 1 || limit > maxLimit {
			t.Fatalf("the limit %d, want 1 to %d", limit, maxLimit)
		}
		if !selects && s.text("account") == "" {
			t.Fatal("a selection of everything was accepted")
		}
	})
}

// noAccounts is a gateway without accounts.
type noAccounts struct{ account.Store }

func (noAccounts) AccountByName(context.Context, string) (account.Account, error) {
	return account.Account{}, relay.Errorf(relay.KindNotFound, "no account")
}
