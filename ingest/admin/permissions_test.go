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

// visitor is a user who has signed in, as its browser sends requests.
type visitor struct {
	o    *office
	in   user.SignedIn
	name string
}

// as signs a new user of a role in.
func (o *office) as(role user.Role, acct relay.AccountID) visitor {
	o.t.Helper()
	name := string(role) + "-1"
	_, err := o.users.Add(o.t.Context(), user.Addition{Name: name, Role: role, Account: acct, Password: password})
	relaytest.NoError(o.t, err)
	in, err := o.users.SignIn(o.t.Context(), name, password)
	relaytest.NoError(o.t, err)
	return visitor{o, in, name}
}

// send makes a request as "METHOD path" with the visitor's cookie and CSRF token;
// headers are name, value, …; an empty value takes one away.
func (v visitor) send(line, body string, headers ...string) (int, string) {
	v.o.t.Helper()
	r := request(line, body)
	r.Header.Set("Cookie", httpd.SessionCookie+"="+v.in.Token)
	r.Header.Set(httpd.HeaderCSRF, v.in.CSRF())
	return v.o.do(r, headers...)
}

func request(line, body string) *http.Request {
	method, target, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "gw.example.com"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (o *office) do(r *http.Request, headers ...string) (int, string) {
	o.t.Helper()
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
		if pair[1] == "" {
			r.Header.Del(pair[0])
		}
	}
	o.now = o.now.Add(time.Second) // so that entries of the audit log have an order
	status, body, _ := answertest.Ask(o.t, o.app, r)
	return status, strings.TrimSpace(body)
}

// rolesOf is who may use each operation: a admin, o operator, v viewer, c account (a
// customer), * anybody without credentials. It says it a second time on purpose: a
// change of the table has to be meant.
func rolesOf() map[string]string {
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

func letters() map[user.Role]string {
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
				want[op.OperationID+" "+method+" "+route] = rolesOf()[op.OperationID]
			}
		}
	}
	surface := New(Deps{Metrics: prometheus.NewRegistry(), Now: time.Now})
	got := map[string]string{}
	for _, p := range surface.operations {
		roles := ""
		for _, r := range []user.Role{user.Admin, user.Operator, user.Viewer, user.Account} {
			if p.allows(r) {
				roles += letters()[r]
			}
		}
		if p.open {
			roles += "*"
		}
		got[p.id+" "+p.method+" "+p.path] = roles
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the operations and their roles (-contract and test, +table):\n%s", diff)
	}
	app := fiber.New()
	surface.Mount(app, httpd.NewAuth(httpd.AuthDeps{Now: time.Now}))
	for _, r := range app.GetRoutes(true) {
		path, below := strings.CutPrefix(r.Path, "/admin")
		if below && r.Method != "HEAD" && !slices.ContainsFunc(surface.operations, func(p operation) bool { return p.method == r.Method && p.path == path }) {
			t.Errorf("%s %s has no permission", r.Method, r.Path)
		}
	}
}

func TestEachRoleMayDoWhatTheTableSays(t *testing.T) {
	o := newOffice(t)
	acct, err := o.db.Accounts.PutAccount(t.Context(), account.Account{Name: "acme"})
	relaytest.NoError(t, err)
	for _, role := range user.Roles() {
		of := relay.AccountID(0)
		if role == user.Account {
			of = acct
		}
		v := o.as(role, of)
		for _, p := range o.surface.operations {
			if p.open || p.id == "signOut" || p.id == "setOwnPassword" {
				continue
			}
			path := strings.NewReplacer(":name", "nobody", ":account", "nobody", ":node", "none", ":event", "none", ":decoder_id", "none", ":alarm_id", "none", ":endpoint", "none", ":iccid", "none", ":ledger_id", "none", ":token_id", "none", ":kind", "geo", ":relay_id", "none", ":device_id", "none").Replace(p.path)
			status, body := v.send(p.method+" /admin"+path, map[bool]string{true: `{}`}[p.method != "GET"])
			refused := status == 403 && strings.Contains(body, "The role "+string(role)+" may not do this; it takes ")
			relaytest.Equal(t, fmt.Sprintf("%s is refused to the role %s", p.id, role), refused, !strings.Contains(rolesOf()[p.id], letters()[role]))
			if status == 401 {
				t.Errorf("%s as %s: 401 %s", p.id, role, body)
			}
		}
		if status, _ := v.send("POST /admin/new/operation", "{}"); (status == 403) != (role != user.Admin) {
			t.Errorf("an operation that the table lacks, as %s: %d", role, status)
		}
		if status, _ := v.send("HEAD /admin/users", ""); (status == 403) != (role != user.Admin) {
			t.Errorf("HEAD as %s: %d", role, status)
		}
		status, _ := v.send("DELETE /admin/session", "")
		relaytest.Equal(t, "the status of signing out", status, 204)
		status, _ = v.send("GET /admin/session", "")
		relaytest.Equal(t, "the status after signing out", status, 401)
	}
}

func TestWritesWithACookieComeFromThePage(t *testing.T) {
	o := newOffice(t)
	v := o.as(user.Admin, 0)
	const add = `{"name":"new","role":"viewer","password":"correct horse battery"}`
	for name, headers := range map[string][]string{
		"without the CSRF token":          {httpd.HeaderCSRF, ""},
		"with another CSRF token":         {httpd.HeaderCSRF, strings.Repeat("x", 43)},
		"from another site":               {"Origin", "https://evil.example.com"},
		"from a page without an origin":   {"Origin", "null"},
		"from another site of the domain": {"Sec-Fetch-Site", "same-site"},
		"across sites":                    {"Sec-Fetch-Site", "cross-site"},
	} {
		if status, body := v.send("POST /admin/users", add, headers...); status != 403 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		r := request("POST /admin/session", `{"name":"admin-1","password":"`+password+`"}`)
		if status, body := o.do(r, headers...); headers[0] != httpd.HeaderCSRF && status != 403 {
			t.Errorf("signing in %s: %d %s", name, status, body)
		}
	}
	status, body := v.send("GET /admin/users", "", httpd.HeaderCSRF, "")
	relaytest.Equal(t, "the status of reading without the CSRF token", status, 200)
	answertest.Lacks(t, "the list of users", body, `"new"`)
	if status, body := v.send("POST /admin/users", add, "Origin", "http://gw.example.com", "Sec-Fetch-Site", "same-origin"); status != 201 {
		t.Errorf("from the page: %d %s", status, body)
	}
	form := request("POST /admin/session", "name=admin-1")
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if status, _ := o.do(form); status != 415 {
		t.Errorf("a form signs in: %d", status)
	}
}

func TestTheCookieOfASession(t *testing.T) {
	o := newOffice(t)
	o.as(user.Viewer, 0)
	for _, tc := range []struct{ name, proto, cookie string }{
		{"without TLS", "", "penstock_session=TOKEN; expires=DATE; path=/; HttpOnly; SameSite=Strict"},
		{"under TLS", "https", "__Host-penstock_session=TOKEN; expires=DATE; path=/; HttpOnly; secure; SameSite=Strict"},
	} {
		r := request("POST /admin/session", `{"name":"Viewer-1","password":"`+password+`"}`)
		r.Header.Set("X-Forwarded-Proto", tc.proto)
		status, _, header := answertest.Ask(t, o.app, r)
		set := header.Get("Set-Cookie")
		value, rest, _ := strings.Cut(set, ";")
		name, token, _ := strings.Cut(value, "=")
		_, rest, _ = strings.Cut(rest, "GMT")
		relaytest.Equal(t, tc.name+": the status", status, 200)
		relaytest.Equal(t, tc.name+": the cookie", name+"=TOKEN; expires=DATE"+rest, tc.cookie)
		if len(token) < 40 {
			t.Errorf("%s: the token has %d characters, want at least 40", tc.name, len(token))
		}
		if _, err := o.users.Session(t.Context(), token); err != nil {
			t.Error(err)
		}
		if _, _, err := o.db.Users.Session(t.Context(), token, time.Now()); err == nil {
			t.Error("the token itself is stored")
		}
	}
}

func TestWrongSignInsAreLimited(t *testing.T) {
	o := newOffice(t)
	v := o.as(user.Viewer, 0)
	statuses := map[int]int{}
	bodies := map[string]bool{}
	for i := range 70 {
		name := v.name
		if i%2 == 1 {
			name = "nobody"
		}
		now := o.now
		status, body := o.do(request("POST /admin/session", `{"name":"`+name+`","password":"wrong `+strings.Repeat("x", i)+`"}`))
		o.now = now // so that no attempt is forgotten
		statuses[status]++
		if status == 401 {
			bodies[body] = true
		}
	}
	relaytest.Equal(t, "the statuses apart from 401 and 429", len(statuses)-2, 0)
	if statuses[401] < 60 || statuses[429] == 0 {
		t.Errorf("%d attempts were answered 401 and %d 429, want at least 60 and 1", statuses[401], statuses[429])
	}
	relaytest.Equal(t, "the number of different refusals", len(bodies), 1)
	if status, _ := v.send("GET /admin/session", ""); status != 200 {
		t.Errorf("the session does not go on: %d", status)
	}
}
