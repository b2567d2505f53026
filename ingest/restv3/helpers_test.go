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

// api is the surface over real records. It checks every answer against the contract.
type api struct {
	t     *testing.T
	app   *fiber.App
	db    *recordstest.Records
	check *contracttest.Checker
}

func clock() time.Time { return time.Date(2026, 11, 20, 9, 34, 15, 0, time.UTC) }

// prober reaches every URL except those that contain "away".
type prober struct{}

func (prober) Probe(_ context.Context, _ relay.AccountID, url string) error {
	if strings.Contains(url, "away") {
		return errors.New("no answer")
	}
	return nil
}

// noLimits enforces no usage limits.
type noLimits struct{}

func (noLimits) EnforceSIMs(context.Context, relay.AccountID, []sim.ICCID) error { return nil }
func (noLimits) EnforcePool(context.Context, relay.AccountID, string) error      { return nil }

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t: t, db: recordstest.Open(t), check: contracttest.Open(t, OpenAPI())}
	sims := sim.New(sim.Deps{
		SIMs: a.db.SIMs, Pools: a.db.Pools, Subscribers: a.db.Subscribers, Callbacks: a.db.Accounts, Prober: prober{}, Limits: noLimits{}, Now: clock,
	})
	a.app = httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	New(Deps{SIMs: sims}).Mount(a.app, httpd.NewAuth(httpd.AuthDeps{Tokens: a.db.Accounts, Now: time.Now}))
	a.app.Use(httpd.NotFound)
	a.db.Customers(t)
	a.declareSIMs()
	return a
}

// iccid returns the ICCID of SIM n: 1 to 5 belong to acme, 6 to globex.
func iccid(n string) string { return "894400000000000000" + n }

func (a *api) declareSIMs() {
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

// ask sends a request with a JSON body and returns status and body of the answer.
func (a *api) ask(token, method, target, body string, headers ...string) (int, string) {
	a.t.Helper()
	if body != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	return a.check.Send(a.t, a.app, answertest.Request(method, target, body, append(headers, "X-Auth-Token", token)...))
}

// expect compares status and body of an answer.
func (a *api) expect(token, method, target, body string, status int, want string) {
	a.t.Helper()
	code, got := a.ask(token, method, target, body)
	relaytest.Equal(a.t, method+" "+target+": the status", code, status)
	relaytest.Equal(a.t, method+" "+target+": the answer", got, want)
}

// expectParts compares the status, requires every part in the body, and returns the member data.
func (a *api) expectParts(token, method, target, body string, status int, parts ...string) map[string]any {
	a.t.Helper()
	code, got := a.ask(token, method, target, body)
	if code != status {
		a.t.Errorf("%s %s: status = %d, want %d: %s", method, target, code, status, got)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			a.t.Errorf("%s %s: got %s\nwant a body that contains %s", method, target, got, part)
		}
	}
	var answer struct{ Data any }
	_ = json.Unmarshal([]byte(got), &answer)
	data, _ := answer.Data.(map[string]any)
	return data
}
