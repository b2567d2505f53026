package restv2

import (
	"context"
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
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// api is the surface over real records. Every answer is compared with the contract.
type api struct {
	t     *testing.T
	app   *fiber.App
	db    *recordstest.Records
	check *contracttest.Checker

	networks *networks
	trials   []inbound.Trial
	sip      *archives
}

func clock() time.Time { return time.Date(2026, 11, 20, 9, 34, 15, 0, time.UTC) }

func newAPI(t *testing.T, relays ...inbound.Relay) *api {
	t.Helper()
	a := &api{t: t, networks: &networks{}, sip: &archives{}, db: recordstest.Open(t), check: contracttest.Open(t, OpenAPI())}
	for _, r := range relays {
		relaytest.NoError(t, a.db.Inbound.Put(t.Context(), r))
	}
	relayService, err := inbound.NewRelayService(inbound.RelayServiceDeps{
		Store: a.db.Inbound, Accounts: a.db.Accounts, CheckURL: noPrivate, Now: clock,
		HasSIM: func(_ context.Context, _ relay.AccountID, iccid string) (bool, error) {
			return iccid == "8944000000000000001", nil
		},
	})
	relaytest.NoError(t, err)
	a.app = httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	sends, err := message.New(message.Deps{Store: a.db.Messages, Credit: a.db.Credit, CheckURL: noPrivate, Now: clock})
	relaytest.NoError(t, err)
	New(Deps{
		Messages: sends, Relays: relayService, TryRelay: a.try, Lookup: a.networks.Lookup, Balance: a.db.Credit.Balance,
		RequestCDR: a.sip.Request, CDRReady: a.sip.Archive, OpenCDR: a.sip.Open, Trunks: a.db.Trunks.Trunks,
	}).Mount(a.app, httpd.NewAuth(httpd.AuthDeps{Tokens: a.db.Accounts, Now: time.Now}))
	a.app.Use(httpd.NotFound)
	a.db.Customers(t, "mvno")
	return a
}

// try returns one request for each parameter of a relay.
func (a *api) try(_ context.Context, r inbound.Relay, t inbound.Trial) (inbound.Explanation, error) {
	a.trials = append(a.trials, t)
	e := inbound.Explanation{Decision: inbound.Decision{State: event.Done, Outcome: r.String()}}
	for _, p := range r.Action.Parameters {
		e.Outgoing = append(e.Outgoing, outbox.Outgoing{DeliveryID: "d1", Method: "GET", URL: p})
	}
	return e, nil
}

func noPrivate(raw string) error {
	if strings.Contains(raw, "10.0.0.1") {
		return errors.New("the address 10.0.0.1 is private")
	}
	return nil
}

// ask sends a request with a JSON body and returns the status and the body of the answer.
func (a *api) ask(token, method, target, body string, headers ...string) (int, string) {
	a.t.Helper()
	headers = append([]string{"X-Auth-Token", token, "Content-Type", "application/json"}, headers...)
	return a.check.Send(a.t, a.app, answertest.Request(method, target, body, headers...))
}

// expect compares the status and the body of an answer, byte for byte.
func (a *api) expect(token, method, target, body string, status int, want string) {
	a.t.Helper()
	code, got := a.ask(token, method, target, body)
	relaytest.Equal(a.t, method+" "+target+": the status", code, status)
	relaytest.Equal(a.t, method+" "+target+": the answer", got, want)
}

func relayTo(acct relay.AccountID, k inbound.Kind, id, number, action string, parameters ...string) inbound.Relay {
	return inbound.Relay{
		ID: id, Account: acct, Kind: k, Number: number, UpdatedAt: clock(),
		Action: inbound.Action{Name: action, Parameters: parameters},
	}
}
