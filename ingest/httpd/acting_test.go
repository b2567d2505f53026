package httpd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

// oneAccount is a store with the account 8.
type oneAccount struct{}

func (oneAccount) Account(_ context.Context, id relay.AccountID) (account.Account, error) {
	if id != 8 {
		return account.Account{}, relay.Errorf(relay.KindNotFound, "account %d: not found", id)
	}
	return account.Account{ID: 8, Name: "acme"}, nil
}

func (s oneAccount) AccountByName(ctx context.Context, name string) (account.Account, error) {
	if name != "acme" {
		return account.Account{}, relay.Errorf(relay.KindNotFound, "account %q: not found", name)
	}
	return s.Account(ctx, 8)
}

func TestActingRequestsAreNotLimitedLikeTheAccounts(t *testing.T) {
	limits := NewLimits(LimitOptions{API: RequestLimit{Requests: 1}, Wait: time.Millisecond, Logger: discardLogger()})
	app := New(Options{Logger: discardLogger(), Limits: limits})
	auth := NewAuth(AuthDeps{
		Tokens: newStore(), AdminToken: "root", Now: time.Now, Accounts: oneAccount{},
		Operations: []Operation{{"GET", "/wait", "wait", ""}, {"GET", "/work", "work", ""}},
	})
	require := auth.Require(account.IoT, APIStyle(Bearer))
	started, release := make(chan struct{}), make(chan struct{})
	app.Get("/wait", require, func(*fiber.Ctx) error { close(started); <-release; return nil })
	app.Get("/work", require, func(c *fiber.Ctx) error { return c.SendString(AccountOf(c).String()) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answertest.Send(t, app, answertest.Request("GET", "/wait", "", "Authorization", "Bearer iot"))
	}()
	<-started
	status, _, _ := answertest.Send(t, app, answertest.Request("GET", "/work", "", "Authorization", "Bearer iot"))
	relaytest.Equal(t, "the status for the account while its only slot is in use", status, 503)
	status, body, _ := answertest.Send(t, app, answertest.Request("GET", "/work", "", "Authorization", "Bearer root", HeaderAccount, "acme"))
	relaytest.Equal(t, "the status for the admin token acting as the account", status, 200)
	relaytest.Equal(t, "the account", body, "8")
	close(release)
	<-ended
}

func TestRequestsMatchOperations(t *testing.T) {
	auth := NewAuth(AuthDeps{Now: time.Now, Operations: []Operation{
		{"GET", "/v3/mno/:iccid", "getSIM", ""}, {"GET", "/v3/mno/job", "listJobs", ""}, {"PATCH", "/iot/devices/:device_id", "patchDevice", ""},
		{"GET", "/ledgers/:ledgerId/ca", "authority", ""},
	}})
	app := fiber.New()
	app.Use(func(c *fiber.Ctx) error {
		o := auth.operationOf(c)
		return c.SendString(o.ID + " " + RouteTarget(c, o.Path))
	})
	for request, want := range map[string]string{
		"GET /v3/mno/894400":         "getSIM 894400",
		"GET /v3/mno/job":            "listJobs ",
		"GET /V3/MNO/Job/":           "listJobs ",
		"GET /ledgers/A%20b/CA":      "authority A b",
		"PATCH /iot/devices/ABC":     "patchDevice ABC",
		"PATCH /iot/devices/ABC/":    "patchDevice ABC",
		"POST /iot/devices/ABC":      "POST /iot/devices/abc ",
		"GET /iot/devices/ABC/other": "GET /iot/devices/abc/other ",
	} {
		method, path, _ := strings.Cut(request, " ")
		_, got, _ := answertest.Send(t, app, answertest.Request(method, path, ""))
		relaytest.Equal(t, request, got, want)
	}
}

// oneSession is a store that returns a session of an operator.
type oneSession struct{}

func (oneSession) Session(_ context.Context, token string) (user.SignInResult, error) {
	return user.SignInResult{User: user.User{Name: "olga", Role: user.Operator}, Token: token}, nil
}

func TestOperationsThatChargeRequireTheCSRFToken(t *testing.T) {
	auth := NewAuth(AuthDeps{Tokens: newStore(), Now: time.Now, Accounts: oneAccount{}, Sessions: oneSession{}, Operations: []Operation{
		{"GET", "/lookup/:number", "lookUpNumber", ""}, {"GET", "/work", "work", ""}, {"POST", "/try", "tryRule", ""},
	}})
	app := New(Options{Logger: discardLogger()})
	require := auth.Require(account.IoT, APIStyle(Bearer))
	for _, o := range auth.Operations {
		app.Add(o.Method, o.Path, require, func(c *fiber.Ctx) error { return c.SendString("passed") })
	}
	const refused = `{"message":"The request lacks the X-CSRF-Token of its session."}`
	for request, want := range map[string]string{"GET /lookup/447700900123": refused, "POST /try": refused, "GET /work": "passed"} {
		method, path, _ := strings.Cut(request, " ")
		_, got, _ := answertest.Send(t, app, answertest.Request(method, path, "", "Cookie", SessionCookie+"=x", HeaderAccount, "acme"))
		relaytest.Equal(t, request, got, want)
	}
}
