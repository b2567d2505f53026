package carrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// tokens is a store with the tokens of the tests.
type tokens struct{}

func (tokens) Token(_ context.Context, hash string) (account.Token, error) {
	for _, t := range []account.Token{
		{Account: 1, Hash: account.HashToken("carrier-1"), Scopes: []account.Scope{account.Carrier}},
		{Account: 2, Hash: account.HashToken("carrier-2"), Scopes: []account.Scope{account.Carrier}},
		{Account: 1, Hash: account.HashToken("signs"), Secret: "key", Scopes: []account.Scope{account.Carrier}},
		{Account: 1, Hash: account.HashToken("customer"), Scopes: account.DefaultScopes()},
	} {
		if t.Hash == hash {
			return t, nil
		}
	}
	return account.Token{}, relay.Errorf(relay.KindNotFound, "no such token")
}

// TokenBySource returns the token of a source. The token of open has no secret, and the token of hook
// lacks the carrier scope.
func (tokens) TokenBySource(_ context.Context, source string) (account.Token, error) {
	bySource := map[string]account.Token{
		"phone":  {Account: 1, Secret: "key", Scopes: []account.Scope{account.Carrier}},
		"tw":     {Account: 1, Secret: "shh", Scopes: []account.Scope{account.Carrier}},
		"vonage": {Account: 1, Secret: "secret", Scopes: []account.Scope{account.Carrier}},
		"open":   {Account: 1, Scopes: []account.Scope{account.Carrier}},
		"hook":   {Account: 1, Secret: "key", Scopes: []account.Scope{account.Webhook}},
	}
	if t, ok := bySource[source]; ok {
		return t, nil
	}
	return account.Token{}, relay.Errorf(relay.KindNotFound, "no such source")
}

// recorder is an intake that stores entries in memory.
type recorder struct {
	entries []intake.Entry
	err     error
}

func (r *recorder) Accept(_ context.Context, e *intake.Entry) (string, error) {
	if r.err != nil {
		return "", r.err
	}
	r.entries = append(r.entries, *e)
	return fmt.Sprintf("n1-s%d", len(r.entries)), nil
}

func newSurface(posts Intake) *fiber.App {
	discardLogger := slog.New(slog.DiscardHandler)
	app := httpd.New(httpd.Options{Logger: discardLogger, BodyLimit: 100 << 10})
	New(posts, Options{Logger: discardLogger, BodyLimit: 100 << 10, PublicURL: "https://sms.example.com/gw", Now: signingTime}).Mount(app, httpd.NewAuth(httpd.AuthDeps{Tokens: tokens{}, AdminToken: "admin", Now: time.Now}))
	app.Use(httpd.NotFound)
	return app
}

// call sends a request and returns the status, the body and the header of the answer.
func call(t *testing.T, app *fiber.App, method, target, token, body string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := app.Test(r, 5000)
	relaytest.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	relaytest.NoError(t, err)
	return resp.StatusCode, string(got), resp.Header
}

const validJSON = `{"id":"c-1","from":"447700900123","to":"447860000001","text":"hello"}`

func TestAnswersToPosts(t *testing.T) {
	for name, tc := range map[string]struct {
		method, target, token, body string
		status                      int
		want                        string
		accepted                    int
	}{
		"json":                               {"POST", "/inbound/sms/json", "carrier-1", validJSON, 200, `{"data":{"id":"n1-s1"}}`, 1},
		"json with a source in the path":     {"POST", "/inbound/sms/json/uk1", "carrier-1", validJSON, 200, `{"data":{"id":"n1-s1"}}`, 1},
		"json in the query":                  {"GET", "/inbound/sms/json?id=1&from=1&to=2&text=a", "carrier-1", "", 200, `{"data":{"id":"n1-s1"}}`, 1},
		"kannel":                             {"GET", "/inbound/sms/kannel?id=1&from=1&to=2&text=a", "carrier-1", "", 200, "", 1},
		"kannel by POST":                     {"POST", "/inbound/sms/kannel?id=1&from=1&to=2&text=a", "carrier-1", "", 200, "", 1},
		"HEAD":                               {"HEAD", "/inbound/sms/json?id=1&from=1&to=2&text=a", "carrier-1", "", 405, "", 0},
		"HEAD with a source":                 {"HEAD", "/inbound/sms/kannel/s?id=1&from=1&to=2&text=a", "carrier-1", "", 405, "", 0},
		"no token":                           {"POST", "/inbound/sms/json", "", validJSON, 401, `{"message":"Unauthenticated."}`, 0},
		"an unknown token":                   {"POST", "/inbound/sms/json", "nobody", validJSON, 401, `{"message":"Unauthenticated."}`, 0},
		"a token without the scope":          {"POST", "/inbound/sms/json", "customer", validJSON, 403, `{"message":"Forbidden."}`, 0},
		"invalid JSON":                       {"POST", "/inbound/sms/json", "carrier-1", "{", 422, `{"message":"Invalid JSON."}`, 0},
		"no body":                            {"POST", "/inbound/sms/json", "carrier-1", "", 422, `{"message":"Invalid JSON."}`, 0},
		"a missing field":                    {"POST", "/inbound/sms/json", "carrier-1", `{"id":"1","to":"2","text":"a"}`, 422, `{"errors":{"from":["The from field is required."]},"message":"The given data was invalid."}`, 0},
		"an unknown carrier":                 {"POST", "/inbound/sms/pigeon", "carrier-1", validJSON, 404, `{"message":"Not found."}`, 0},
		"a coding with a plus sign":          {"POST", "/inbound/sms/json", "carrier-1", `{"id":"1","from":"1","to":"2","data":"00","coding":"+8"}`, 422, `{"errors":{"coding":["The coding must be 7, 8 or 16."]},"message":"The given data was invalid."}`, 0},
		"a part with a plus sign":            {"GET", "/inbound/sms/vonage?messageId=1&msisdn=1&to=2&text=a&type=text&concat=true&concat-ref=1&concat-total=2&concat-part=%2B1", "carrier-1", "", 422, `{"errors":{"concat-part":["The concat-part must be a number from 1 to 2."]},"message":"The given data was invalid."}`, 0},
		"kannel with an unexpanded template": {"GET", "/inbound/sms/kannel?from=%25p&to=%25P&text=a", "carrier-1", "", 422, `{"errors":{"to":["The to must be a number of 1 to 15 digits."]},"message":"The given data was invalid."}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			posts := &recorder{}
			status, body, _ := call(t, newSurface(posts), tc.method, tc.target, tc.token, tc.body)
			relaytest.Equal(t, "the status", status, tc.status)
			relaytest.Equal(t, "the answer", body, tc.want)
			relaytest.Equal(t, "the number of accepted entries", len(posts.entries), tc.accepted)
		})
	}
}

func TestErrorsOfTheJournalAreAnswered(t *testing.T) {
	for _, err := range []error{fmt.Errorf("intake sms: %w", intake.ErrFull), errors.New("disk gone")} {
		status, body, header := call(t, newSurface(&recorder{err: err}), "POST", "/inbound/sms/json", "carrier-1", validJSON)
		relaytest.Equal(t, "the status for "+err.Error(), status, 503)
		if header.Get("Retry-After") == "" {
			t.Errorf("%v: no Retry-After in the answer", err)
		}
		if strings.Contains(body, "disk") {
			t.Errorf("%v: answer = %q, want it without the cause", err, body)
		}
	}
	if status, _, _ := call(t, newSurface(&recorder{err: intake.ErrTooLarge}), "POST", "/inbound/sms/json", "carrier-1", validJSON); status != 413 {
		t.Errorf("status for ErrTooLarge = %d, want 413", status)
	}
}

// Fiber reuses the memory of a request for the next one. Entries must not share it.
func TestEntriesOutliveTheirRequest(t *testing.T) {
	posts := &recorder{}
	app := newSurface(posts)
	for i := range 20 {
		body := fmt.Sprintf(`{"id":"c-%02d","from":"1","to":"2","text":"text %02d"}`, i, i)
		if status, got, _ := call(t, app, "POST", fmt.Sprintf("/inbound/sms/json/src%02d?q=%02d", i, i), "carrier-2", body); status != 200 {
			t.Fatalf("answer = %d %s, want 200", status, got)
		}
	}
	for i, e := range posts.entries {
		relaytest.Equal(t, "the body", string(e.Body), fmt.Sprintf(`{"id":"c-%02d","from":"1","to":"2","text":"text %02d"}`, i, i))
		relaytest.Equal(t, "the path", e.Path, fmt.Sprintf("/inbound/sms/json/src%02d", i))
		relaytest.Equal(t, "the query", e.Query, fmt.Sprintf("q=%02d", i))
		relaytest.Equal(t, "the source", e.Source, "json")
		relaytest.Equal(t, "the account", e.Account, 2)
		relaytest.Equal(t, "the carrier", carrierOf(&e), fmt.Sprintf("json/src%02d", i))
	}
}
