package restv3

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

// api is the surface over real records; every answer is held to the contract.
type api struct {
	t     *testing.T
	app   *fiber.App
	db    *recordstest.Records
	check *contracttest.Checker
}

func clock() time.Time { return time.Date(2026, 11, 20, 9, 34, 15, 0, time.UTC) }

// hermit is a prober that reaches only what does not say that it is away.
type hermit struct{}

func (hermit) Probe(_ context.Context, _ relay.AccountID, url string) error {
	if strings.Contains(url, "away") {
		return errors.New("nobody answers")
	}
	return nil
}

// lenient enforces no limits.
type lenient struct{}

func (lenient) EnforceSIMs(context.Context, relay.AccountID, []sim.ICCID) error { return nil }
func (lenient) EnforcePool(context.Context, relay.AccountID, string) error      { return nil }

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t: t, db: recordstest.Open(t), check: contracttest.Open(t, OpenAPI())}
	sims := sim.New(sim.Deps{
		SIMs: a.db.SIMs, Pools: a.db.Pools, Subscribers: a.db.Subscribers, Callbacks: a.db.Accounts, Prober: hermit{}, Limits: lenient{}, Now: clock,
	})
	a.app = httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	New(Deps{SIMs: sims}).Mount(a.app, httpd.NewAuth(httpd.AuthDeps{Tokens: a.db.Accounts, Now: time.Now}))
	a.app.Use(httpd.NotFound)
	a.db.Customers(t)
	a.sims()
	return a
}

// iccid is one of acme's SIMs 1 to 5, or globex's 6.
func iccid(n string) string { return "894400000000000000" + n }

func (a *api) sims() {
	a.t.Helper()
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		owner := relay.AccountID(1)
		if n == "6" {
			owner = 2
		}
		relaytest.NoError(a.t, a.db.SIMs.Declare(a.t.Context(), owner, []sim.SIM{{
			ICCID: sim.ICCID(iccid(n)), IMSI: "23415000000000" + n, MSISDN: "44770090000" + n, State: sim.Active,
			Codes: sim.Codes{PIN: "1234", PUK: "12345678"},
		}}, false))
	}
}

// ask sends a request as a JSON client does and returns status and body.
func (a *api) ask(token, method, target, body string, headers ...string) (int, string) {
	a.t.Helper()
	if body != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	return a.check.Ask(a.t, a.app, answertest.Request(method, target, body, append(headers, "X-Auth-Token", token)...))
}

// is checks status and body of an answer, byte for byte.
func (a *api) is(token, method, target, body string, status int, want string) {
	a.t.Helper()
	code, got := a.ask(token, method, target, body)
	relaytest.Equal(a.t, method+" "+target+": the status", code, status)
	relaytest.Equal(a.t, method+" "+target+": the answer", got, want)
}

// has checks the status and that the body holds some words; it returns data.
func (a *api) has(token, method, target, body string, status int, words ...string) map[string]any {
	a.t.Helper()
	code, got := a.ask(token, method, target, body)
	if code != status {
		a.t.Errorf("%s %s: %d %s, want %d", method, target, code, got, status)
	}
	for _, w := range words {
		if !strings.Contains(got, w) {
			a.t.Errorf("%s %s: %s\nwant a body with %s", method, target, got, w)
		}
	}
	var answer struct{ Data any }
	_ = json.Unmarshal([]byte(got), &answer)
	data, _ := answer.Data.(map[string]any)
	return data
}
