package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

const password = "correct horse battery"

// userSession sends requests with the session of a user.
type userSession struct {
	api     *operatorAPI
	session user.SignInResult
	name    string
}

// signIn adds a user with a role and signs in as the user.
func (o *operatorAPI) signIn(role user.Role, acct relay.AccountID) userSession {
	o.t.Helper()
	name := string(role) + "-1"
	_, err := o.users.Add(o.t.Context(), user.NewUser{Name: name, Role: role, Account: acct, Password: password})
	relaytest.NoError(o.t, err)
	session, err := o.users.SignIn(o.t.Context(), name, password)
	relaytest.NoError(o.t, err)
	return userSession{o, session, name}
}

// send sends a request "METHOD path" with the cookie and the CSRF token of the session. headers are
// names and values; an empty value removes a header.
func (u userSession) send(line, body string, headers ...string) (int, string) {
	u.api.t.Helper()
	r := request(line, body)
	r.Header.Set("Cookie", httpd.SessionCookie+"="+u.session.Token)
	r.Header.Set(httpd.HeaderCSRF, u.session.CSRF())
	return u.api.do(r, headers...)
}

// request returns a request "METHOD path" with a JSON body.
func request(line, body string) *http.Request {
	method, target, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "gw.example.com"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// do sends a request and returns the status and the body of the answer.
func (o *operatorAPI) do(r *http.Request, headers ...string) (int, string) {
	o.t.Helper()
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
		if pair[1] == "" {
			r.Header.Del(pair[0])
		}
	}
	o.now = o.now.Add(time.Second) // so that entries of the audit log have an order
	status, body, _ := answertest.Send(o.t, o.app, r)
	return status, strings.TrimSpace(body)
}

// rolesByOperation returns the roles that may use each operation: a for admin, o for operator, v
// for viewer, c for account, and * for callers without credentials. It repeats the roles of
// allOperations, so that a mistake in one of the two is noticed.
func rolesByOperation() map[string]string {
	return map[string]string{
		"signIn": "*", "showProvider": "*", "startProviderSignIn": "*", "finishProviderSignIn": "*",
		"showSession": "aovc", "signOut": "aovc", "setOwnPassword": "aovc",
		"listUsers": "a", "addUser": "a", "showUser": "a", "changeUser": "a", "removeUser": "a", "listAudit": "a",
		"listTokensOfAccounts": "a", "addToken": "a", "revokeToken": "a",
		"putInventory": "a", "getInventory": "ao", "getInventoryDrift": "ao", "recover": "a", "getStatus": "aov", "getTraffic": "aov", "listAccounts": "aovc", "listGateways": "aov", "forgetGateway": "ao",
		"addAccount": "a", "showAccount": "aovc", "changeAccount": "a", "removeAccount": "a", "adjustCredit": "a",
		"listEvents": "aovc", "getEvent": "aovc", "replayEvents": "ao",
		"listDeliveries": "aovc", "replayDeliveries": "ao", "tryDecoder": "aovc", "showDecoder": "aovc", "explainRelay": "ao",
		"listRelaysOfAccounts": "aovc", "showRelay": "aovc",
		"listDevicesOfAccounts": "aovc", "showDevice": "aovc",
		"listSIMsOfAccounts": "aovc", "showSIM": "aovc", "usageOfSIM": "aovc", "listJobsOfAccounts": "aovc",
		"listLedgersOfAccounts": "aovc", "listEntriesOfLedger": "aovc", "listTokensOfLedger": "aovc", "listSensorTypes": "aov", "addSensorType": "ao", "showLedgerToken": "aovc", "listBalances": "aovc",
		"listIdentifiers": "aov", "releaseIdentifier": "ao",
		"listDecodersOfAccounts": "aovc",
		"listRulesOfAccount":     "aoc", "listAlarmsOfAccount": "aovc",
		"listBreakers": "aovc", "closeBreaker": "ao", "listCredit": "aovc", "listMessages": "aovc", "resendMessages": "ao",
	}
}

// roleLetters returns the letters of roles in rolesByOperation.
func roleLetters() map[user.Role]string {
	return map[user.Role]string{user.Admin: "a", user.Operator: "o", user.Viewer: "v", user.Account: "c"}
}

func TestEveryRouteHasAPermission(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	want := map[string]string{} // operation → roles
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if strings.HasPrefix(path, "/admin") {
				route := strings.NewReplacer("{", ":", "}", "").Replace(strings.TrimPrefix(path, "/admin"))
				want[op.OperationID+" "+method+" "+route] = rolesByOperation()[op.OperationID]
			}
		}
	}
	surface := New(Deps{Metrics: prometheus.NewRegistry(), Now: time.Now})
	got := map[string]string{}
	for _, p := range surface.operations {
		roles := ""
		for _, r := range []user.Role{user.Admin, user.Operator, user.Viewer, user.Account} {
			if p.allows(r) {
				roles += roleLetters()[r]
			}
		}
		if p.open {
			roles += "*"
		}
		got[p.id+" "+p.method+" "+p.path] = roles
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations and roles differ (-contract and test, +allOperations):\n%s", diff)
	}
	app := fiber.New()
	surface.Mount(app, httpd.NewAuth(httpd.AuthDeps{Now: time.Now}))
	for _, r := range app.GetRoutes(true) {
		path, isAdmin := strings.CutPrefix(r.Path, "/admin")
		if isAdmin && r.Method != "HEAD" && !slices.ContainsFunc(surface.operations, func(p operation) bool { return p.method == r.Method && p.path == path }) {
			t.Errorf("%s %s has no permission", r.Method, r.Path)
		}
	}
}

func TestEachRoleMayDoWhatTheTableSays(t *testing.T) {
	o := newOperatorAPI(t)
	acct, err := o.db.Accounts.PutAccount(t.Context(), account.Account{Name: "acme"})
	relaytest.NoError(t, err)
	for _, role := range user.Roles() {
		roleAccount := relay.AccountID(0)
		if role == user.Account {
			roleAccount = acct
		}
		session := o.signIn(role, roleAccount)
		for _, p := range o.surface.operations {
			if p.open || p.id == "signOut" || p.id == "setOwnPassword" {
				continue
			}
			path := strings.NewReplacer(":name", "nobody", ":account", "nobody", ":node", "none", ":event", "none", ":decoder_id", "none", ":alarm_id", "none", ":endpoint", "none", ":iccid", "none", ":ledger_id", "none", ":token_id", "none", ":kind", "geo", ":relay_id", "none", ":device_id", "none").Replace(p.path)
			status, body := session.send(p.method+" /admin"+path, map[bool]string{true: `{}`}[p.method != "GET"])
			refused := status == 403 && strings.Contains(body, "The role "+string(role)+" may not do this; allowed: ")
			relaytest.Equal(t, fmt.Sprintf("%s is refused to the role %s", p.id, role), refused, !strings.Contains(rolesByOperation()[p.id], roleLetters()[role]))
			if status == 401 {
				t.Errorf("answer to %s as %s = 401 %s", p.id, role, body)
			}
		}
		if status, _ := session.send("POST /admin/new/operation", "{}"); (status == 403) != (role != user.Admin) {
			t.Errorf("status of an unknown operation as %s = %d", role, status)
		}
		if status, _ := session.send("HEAD /admin/users", ""); (status == 403) != (role != user.Admin) {
			t.Errorf("status of HEAD as %s = %d", role, status)
		}
		status, _ := session.send("DELETE /admin/session", "")
		relaytest.Equal(t, "the status of signing out", status, 204)
		status, _ = session.send("GET /admin/session", "")
		relaytest.Equal(t, "the status after signing out", status, 401)
	}
}

func TestWritesFromOtherSitesAreRefused(t *testing.T) {
	o := newOperatorAPI(t)
	session := o.signIn(user.Admin, 0)
	const add = `{"name":"new","role":"viewer","password":"correct horse battery"}`
	for name, headers := range map[string][]string{
		"without the CSRF token":               {httpd.HeaderCSRF, ""},
		"with another CSRF token":              {httpd.HeaderCSRF, strings.Repeat("x", 43)},
		"from another site":                    {"Origin", "https://evil.example.com"},
		"from an opaque origin":                {"Origin", "null"},
		"from another host of the domain":      {"Sec-Fetch-Site", "same-site"},
		"from another site, by Sec-Fetch-Site": {"Sec-Fetch-Site", "cross-site"},
	} {
		if status, body := session.send("POST /admin/users", add, headers...); status != 403 {
			t.Errorf("%s: answer = %d %s, want 403", name, status, body)
		}
		r := request("POST /admin/session", `{"name":"admin-1","password":"`+password+`"}`)
		if status, body := o.do(r, headers...); headers[0] != httpd.HeaderCSRF && status != 403 {
			t.Errorf("sign-in %s: answer = %d %s, want 403", name, status, body)
		}
	}
	status, body := session.send("GET /admin/users", "", httpd.HeaderCSRF, "")
	relaytest.Equal(t, "the status of reading without the CSRF token", status, 200)
	answertest.NotContains(t, "the list of users", body, `"new"`)
	if status, body := session.send("POST /admin/users", add, "Origin", "http://gw.example.com", "Sec-Fetch-Site", "same-origin"); status != 201 {
		t.Errorf("answer to a write from the console = %d %s, want 201", status, body)
	}
	form := request("POST /admin/session", "name=admin-1")
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if status, _ := o.do(form); status != 415 {
		t.Errorf("status of a sign-in with a form = %d, want 415", status)
	}
}

func TestAttributesOfTheSessionCookie(t *testing.T) {
	o := newOperatorAPI(t)
	o.signIn(user.Viewer, 0)
	for _, tc := range []struct{ name, proto, cookie string }{
		{"without TLS", "", "penstock_session=TOKEN; expires=DATE; path=/; HttpOnly; SameSite=Strict"},
		{"over TLS", "https", "__Host-penstock_session=TOKEN; expires=DATE; path=/; HttpOnly; secure; SameSite=Strict"},
	} {
		r := request("POST /admin/session", `{"name":"Viewer-1","password":"`+password+`"}`)
		r.Header.Set("X-Forwarded-Proto", tc.proto)
		status, _, header := answertest.Send(t, o.app, r)
		value, attributes, _ := strings.Cut(header.Get("Set-Cookie"), ";")
		name, token, _ := strings.Cut(value, "=")
		_, attributes, _ = strings.Cut(attributes, "GMT")
		relaytest.Equal(t, tc.name+": the status", status, 200)
		relaytest.Equal(t, tc.name+": the cookie", name+"=TOKEN; expires=DATE"+attributes, tc.cookie)
		if len(token) < 40 {
			t.Errorf("%s: length of the token = %d, want at least 40", tc.name, len(token))
		}
		if _, err := o.users.Session(t.Context(), token); err != nil {
			t.Error(err)
		}
		if _, _, err := o.db.Users.Session(t.Context(), token, time.Now()); err == nil {
			t.Error("the token is stored without hashing")
		}
	}
}

func TestWrongSignInsAreLimited(t *testing.T) {
	o := newOperatorAPI(t)
	session := o.signIn(user.Viewer, 0)
	statuses := map[int]int{}
	bodies := map[string]bool{}
	for i := range 70 {
		name := session.name
		if i%2 == 1 {
			name = "nobody"
		}
		now := o.now
		status, body := o.do(request("POST /admin/session", `{"name":"`+name+`","password":"wrong `+strings.Repeat("x", i)+`"}`))
		o.now = now // so that no attempt expires
		statuses[status]++
		if status == 401 {
			bodies[body] = true
		}
	}
	relaytest.Equal(t, "the number of statuses other than 401 and 429", len(statuses)-2, 0)
	if statuses[401] < 60 || statuses[429] == 0 {
		t.Errorf("attempts with status 401 = %d, with 429 = %d, want at least 60 and 1", statuses[401], statuses[429])
	}
	relaytest.Equal(t, "the number of different refusals", len(bodies), 1)
	if status, _ := session.send("GET /admin/session", ""); status != 200 {
		t.Errorf("status of an existing session = %d, want 200", status)
	}
}
