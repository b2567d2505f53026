package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/delivery/oidc/oidctest"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/account"
)

// userPassword is that of every user here.
const userPassword = "correct horse battery"

// addUser adds a user; account is JSON, empty for none.
func (g *gateway) addUser(name, role, account string) {
	g.t.Helper()
	body := fmt.Sprintf(`{"name":%q,"role":%q,"password":%q}`, name, role, userPassword)
	if account != "" {
		body = strings.TrimSuffix(body, "}") + `,"account":` + account + "}"
	}
	g.admin().post("/admin/users", body).mentions(g.t, 201, `"name":"`+name+`"`)
}

// signedIn is a user who has signed in, as a browser is.
func (g *gateway) signedIn(name string) caller {
	g.t.Helper()
	if c, ok := g.signed.Load(name); ok {
		return c.(caller)
	}
	c := g.signIn(name)
	g.signed.Store(name, c)
	return c
}

// signIn begins a session of a user.
func (g *gateway) signIn(name string) caller {
	g.t.Helper()
	a := g.as("").post("/admin/session", fmt.Sprintf(`{"name":%q,"password":%q}`, name, userPassword))
	var in struct {
		Data struct {
			CSRF string `json:"csrf_token"`
		}
	}
	a.into(g.t, &in)
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	if a.status != 200 || cookie == "" || in.Data.CSRF == "" {
		g.t.Fatalf("signing %s in: %d %s", name, a.status, a.body)
	}
	return g.as("").with("Cookie", cookie).with("X-CSRF-Token", in.Data.CSRF)
}

// employ makes the users that the samples name, and returns one that may go.
func (g *gateway) employ() (leaver string) {
	g.t.Helper()
	g.addUser("viewer-of-acme", "account", "1")
	g.addUser("leaver", "viewer", "")
	g.addUser("changed", "viewer", "")
	g.signedIn("viewer-of-acme")
	return "leaver"
}

// userSamples are requests about users.
func userSamples(leaver string) []sample {
	const js = "application/json"
	return []sample{
		{"showSession", "GET", "/admin/session", "", ""},
		{"showProvider", "GET", "/admin/oidc", "", ""},
		{"listUsers", "GET", "/admin/users", "", ""},
		{"showUser", "GET", "/admin/users/changed", "", ""},
		{"addUser", "POST", "/admin/users", js, `{"name":"NEW","role":"viewer","password":"` + userPassword + `"}`},
		{"changeUser", "PATCH", "/admin/users/changed", js, `{"role":"account","account":1,"password":"` + userPassword + `","disabled":false}`},
		{"removeUser", "DELETE", "/admin/users/" + leaver, "", ""},
		{"listAudit", "GET", "/admin/audit", "", ""},
		{"listAudit", "GET", "/admin/audit?actor=admin%20token&operation=addUser&target=changed&account=1&outcome=done&from=2020-01-01T00:00:00Z&to=2099-01-01T00:00:00Z&limit=1&cursor=zz", "", ""},
	}
}

// madeToken is the answer of addToken.
type madeToken struct{ Data struct{ ID, Token string } }

// addToken makes a token for acme.
func (g *gateway) addToken(scope string) (made madeToken) {
	g.t.Helper()
	a := g.admin().post("/admin/tokens", fmt.Sprintf(`{"account":"acme","scopes":[%q]}`, scope))
	a.mentions(g.t, 201, `"scopes":["`+scope+`"]`)
	a.into(g.t, &made)
	return made
}

// tokenSamples are requests about the tokens of accounts.
func tokenSamples(revoked string) []sample {
	return []sample{
		{"listTokensOfAccounts", "GET", "/admin/tokens", "", ""},
		{"listTokensOfAccounts", "GET", "/admin/tokens?account=acme", "", ""},
		{"addToken", "POST", "/admin/tokens", "application/json", `{"account":"acme","scopes":["carrier"],"source":"NEW","secret":"shared"}`},
		{"revokeToken", "DELETE", "/admin/tokens/" + revoked, "", ""},
	}
}

// tokenMistakes are what the operations on tokens refuse.
func tokenMistakes() []refused {
	const js = "application/json"
	return []refused{
		{sample{"", "GET", "/admin/tokens?account=nobody", "", ""}, 422},
		{sample{"", "POST", "/admin/tokens", js, `{}`}, 422},
		{sample{"", "POST", "/admin/tokens", js, `{"account":"acme","scopes":["root"],"source":"a b"}`}, 422},
		{sample{"", "POST", "/admin/tokens", js, `{"account":"acme","source":"hq"}`}, 409},
		{sample{"", "DELETE", "/admin/tokens/000000000000", "", ""}, 404},
	}
}

// userMistakes are what the operations on users refuse.
func userMistakes() []refused {
	const js = "application/json"
	return []refused{
		{sample{"", "POST", "/admin/users", js, `{"name":"a b","role":"root","password":"short"}`}, 422},
		{sample{"", "POST", "/admin/users", js, `{"name":"changed","role":"viewer","password":"` + userPassword + `"}`}, 409},
		{sample{"", "GET", "/admin/users/nobody", "", ""}, 404},
		{sample{"", "PATCH", "/admin/users/nobody", js, `{"role":"admin"}`}, 404},
		{sample{"", "PATCH", "/admin/users/changed", js, `{"role":"root"}`}, 422},
		{sample{"", "DELETE", "/admin/users/nobody", "", ""}, 404},
		{sample{"", "GET", "/admin/audit?outcome=lost", "", ""}, 422},
		{sample{"", "GET", "/admin/oidc/start", "", ""}, 404},
		{sample{"", "GET", "/admin/oidc/callback?state=x", "", ""}, 404},
		{sample{"", "PUT", "/admin/session/password", js, `{"password":"a","new_password":"b"}`}, 403},
	}
}

// openToAccounts reports whether the role account may use an operation.
func openToAccounts(operation string) bool {
	return slices.Contains([]string{
		"showSession", "listEvents", "listDeliveries", "tryDecoder", "showDecoder", "listRulesOfAccount", "tryRuleOfAccount", "listAlarmsOfAccount", "listCredit", "listMessages",
		"listDevicesOfAccounts", "showDevice", "aggregateDeviceOfAccount", "listFramesOfDevice", "listMarkersOfDevice", "listDecodersOfAccounts",
		"listSIMsOfAccounts", "showSIM", "usageOfSIM", "listJobsOfAccounts", "listLedgersOfAccounts", "listEntriesOfLedger", "showLedgerToken", "listBalances",
		"listRelaysOfAccounts", "showRelay",
	}, operation)
}

// sessions are what users are answered.
func (g *gateway) sessions() {
	g.t.Helper()
	right := `{"name":"viewer-of-acme","password":"` + userPassword + `"}`
	who := g.signedIn("viewer-of-acme")
	g.addUser("brief", "operator", "")
	brief := g.signIn("brief")
	for _, tc := range []struct {
		by     caller
		method string
		target string
		body   string
		want   int
	}{
		{who, "GET", "/admin/deliveries?account=999", "", 403}, {who, "GET", "/admin/events?account=999", "", 403}, {who, "GET", "/admin/messages?account=999", "", 403},
		{who, "GET", "/admin/rules?account=999", "", 403}, {who, "GET", "/admin/alarms?account=999", "", 403}, {who, "GET", "/admin/credit?account=999", "", 403},
		{who, "GET", "/admin/decoders/lpp?account=999", "", 403}, {who, "POST", "/admin/rules/try", `{"account":999,"rule_id":"r","device_id":"d"}`, 403},
		{who, "POST", "/admin/decoders/try", `{"account":999,"codec":"json","frames":[{"hex":"01"}]}`, 403},
		{who, "GET", "/admin/devices?account=999", "", 403}, {who, "GET", "/admin/devices/none?account=999", "", 403}, {who, "GET", "/admin/devices/none/readings/aggregate?account=999", "", 403},
		{who, "GET", "/admin/devices/none/frames?account=999", "", 403}, {who, "GET", "/admin/devices/none/markers?account=999", "", 403}, {who, "GET", "/admin/decoders?account=999", "", 403},
		{who, "GET", "/admin/sims?account=999", "", 403}, {who, "GET", "/admin/sims/" + activeSIM + "?account=999", "", 403}, {who, "GET", "/admin/sims/" + activeSIM + "/usage?account=999", "", 403},
		{who, "GET", "/admin/relays?account=999", "", 403}, {who, "GET", "/admin/relays/geo/g1?account=999", "", 403},
		{who, "GET", "/admin/jobs?account=999", "", 403}, {who, "GET", "/admin/ledgers?account=999", "", 403}, {who, "GET", "/admin/ledgers/l1/entries?account=999", "", 403},
		{who, "GET", "/admin/ledger-tokens/none?account=999", "", 403}, {who, "GET", "/admin/balances?account=999", "", 403},
		{who, "POST", "/admin/recover", "", 403}, {who, "GET", "/admin/session", "", 200}, {who, "GET", "/admin/decoders/lpp", "", 200},
		{g.as("").with("Content-Encoding", "gzip"), "POST", "/admin/session", "no gzip", 400},
		{g.as(""), "POST", "/admin/session", `{"name":"viewer-of-acme","password":"another one 12"}`, 401},
		{g.as("").with("Origin", "https://evil.example.com"), "POST", "/admin/session", right, 403},
		{g.as(""), "POST", "/admin/session", strings.Repeat(" ", 2<<20), 413},
		{g.as("").with("Content-Type", "text/plain"), "POST", "/admin/session", right, 415},
		{g.as(""), "POST", "/admin/session", `{}`, 422},
		{g.as(""), "PUT", "/admin/session/password", `{}`, 401}, {g.as(""), "DELETE", "/admin/session", "", 401},
		{brief, "PUT", "/admin/session/password", `{"password":"` + userPassword + `","new_password":"short"}`, 422},
		{brief.with("X-CSRF-Token", ""), "DELETE", "/admin/session", "", 403}, {brief, "DELETE", "/admin/session", "", 204}, {brief, "GET", "/admin/session", "", 401},
		{g.signIn("brief"), "PUT", "/admin/session/password", `{"password":"` + userPassword + `","new_password":"` + userPassword + `"}`, 204},
	} {
		if a := tc.by.do(tc.method, tc.target, tc.body); a.status != tc.want {
			g.t.Errorf("%s %s: %d %s, want %d", a.of, tc.body, a.status, a.body, tc.want)
		}
	}
	if len(g.behind) == 0 { // each gateway counts for itself
		g.signInsAreLimited()
	}
}

// signInsAreLimited guesses until an address is refused.
func (g *gateway) signInsAreLimited() {
	g.t.Helper()
	session := g.signIn("brief").with("X-Forwarded-For", "203.0.113.9")
	guesser := g.as("").with("X-Forwarded-For", "203.0.113.9")
	for n := range 1000 { // an attempt is forgotten every six seconds
		if a := guesser.post("/admin/session", fmt.Sprintf(`{"name":"guessed","password":"guess %d"}`, n)); a.status == 429 {
			break
		} else if a.status != 401 {
			g.t.Fatalf("%d %s", a.status, a.body)
		}
	}
	guesser.post("/admin/session", `{"name":"other","password":"guess"}`).mentions(g.t, 429, "Too Many Attempts.")
	session.do("PUT", "/admin/session/password", `{"password":"guess","new_password":"another password"}`).mentions(g.t, 429, "Too Many Attempts.")
}

// testContractProvider signs in through a provider, as a browser does.
func testContractProvider(t *testing.T, checker *contracttest.Checker) {
	p := oidctest.Start(t)
	g := start(t, &site{name: "embedded"}, fixture(t, "contract.yaml"), "PENSTOCK_OIDC_ISSUER="+p.URL, "PENSTOCK_OIDC_CLIENT_ID="+oidctest.ClientID,
		"PENSTOCK_OIDC_CLIENT_SECRET="+oidctest.ClientSecret, "PENSTOCK_OIDC_OPERATOR=ops", "PENSTOCK_OIDC_ACCOUNT_CLAIM=account")
	g.examine(checker)
	g.as("").get("/admin/oidc").is(t, 200, `{"data":{"enabled":true}}`)
	p.Vouch(map[string]any{"preferred_username": "Anna", "groups": []string{"ops"}})
	back, kept := g.visitProvider()
	a := g.as("").with("Cookie", kept).get(back)
	if a.status != 302 || a.header.Get("Location") != "/console" {
		t.Fatalf("%d to %s", a.status, a.header.Get("Location"))
	}
	cookie := sessionOf(a)
	var in struct {
		Data struct{ Name, Role, Provider string }
	}
	g.as("").with("Cookie", cookie).get("/admin/session").into(t, &in)
	if in.Data.Name != "anna" || in.Data.Role != "operator" || in.Data.Provider != "oidc" {
		t.Errorf("%+v", in.Data)
	}
	for name, tc := range map[string]struct {
		claims map[string]any
		change func(back, kept *string)
		want   string
	}{
		"a callback that is used again":          {change: func(b, k *string) { g.as("").with("Cookie", *k).get(*b) }, want: "refused"},
		"another browser":                        {change: func(_, k *string) { *k = "" }, want: "refused"},
		"another state":                          {change: func(b, _ *string) { *b = strings.Replace(*b, "state=", "state=x", 1) }, want: "refused"},
		"a refusal of the provider":              {change: func(b, _ *string) { *b += "&error=access_denied" }, want: "refused"},
		"an account that does not exist":         {claims: map[string]any{"preferred_username": "anna", "account": "nobody"}, want: "refused"},
		"no role":                                {claims: map[string]any{"preferred_username": "anna", "groups": "guests"}, want: "refused"},
		"a name that another user has":           {claims: map[string]any{"sub": "43", "preferred_username": "anna", "groups": "ops"}, want: "refused"},
		"a user of one account, who is let in":   {claims: map[string]any{"sub": "44", "preferred_username": "carl", "account": "acme"}, want: ""},
		"an account by its id, who is let in":    {claims: map[string]any{"sub": "45", "preferred_username": "cleo", "account": 1}, want: ""},
		"the same user again, who is let in too": {want: ""},
	} {
		if p.Vouch(tc.claims); tc.claims == nil {
			p.Vouch(map[string]any{"preferred_username": "Anna", "groups": []string{"ops"}})
		}
		back, kept := g.visitProvider()
		if tc.change != nil {
			tc.change(&back, &kept)
		}
		want := "/console"
		if tc.want != "" {
			want = "/console#/?sign_in=" + tc.want
		}
		if a := g.as("").with("Cookie", kept).get(back); a.status != 302 || a.header.Get("Location") != want || (sessionOf(a) == "") != (tc.want != "") {
			t.Errorf("%s: %d to %s with %q", name, a.status, a.header.Get("Location"), sessionOf(a))
		}
	}
}

// sessionOf is the cookie of the session that an answer begins, "" for none.
func sessionOf(a answer) string {
	for _, set := range a.header.Values("Set-Cookie") {
		if cookie, _, _ := strings.Cut(set, ";"); strings.HasPrefix(cookie, "penstock_session=") && !strings.HasSuffix(cookie, "=") {
			return cookie
		}
	}
	return ""
}

// visitProvider begins a sign-in, lets the provider let the user in, and returns where
// the browser is sent back to and the cookie that it kept.
func (g *gateway) visitProvider() (back, kept string) {
	g.t.Helper()
	a := g.as("").get("/admin/oidc/start")
	kept, attributes, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	if a.status != 302 || !strings.Contains(attributes, "HttpOnly") || !strings.Contains(attributes, "SameSite=Lax") {
		g.t.Fatalf("%d %s %s", a.status, a.body, a.header)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(a.header.Get("Location"))
	must(g.t, err)
	_ = resp.Body.Close()
	to, err := resp.Location()
	must(g.t, err)
	return to.RequestURI(), kept
}

// TestUsersFromTheShell manages users with the program.
func TestUsersFromTheShell(t *testing.T) {
	t.Parallel()
	g := start(t, &site{name: "embedded"}, fixture(t, "contract.yaml"))
	shell := func(stdin string, args ...string) (string, int) {
		var out strings.Builder
		code := Run(append([]string{"user"}, append(args, "--server", g.url(), "--admin-token", adminToken)...), Environment{t.Context(), g.env, strings.NewReader(stdin), &out, &out, "test"})
		return out.String(), code
	}
	for _, tc := range []struct {
		stdin, args, want string
		code              int
	}{
		{"", "list", "there are no users", 0},
		{"", "add anna --role admin", "nothing on standard input: write the password or secret to it", 1},
		{"short\n", "add anna --role admin", "password: The password must have at least 12 characters", 1},
		{userPassword + "\n", "add anna --role admin", "user anna added as admin", 0},
		{userPassword, "add carl --role account --account acme", "user carl added as account", 0},
		{userPassword, "add anna --role viewer", "There is a user named anna already.", 1},
		{"", "list", "anna  admin    -        password  enabled  never", 0},
		{"", "set carl", "nothing to change: give --role", 1},
		{"", "set carl --role viewer --disable", "user carl changed", 0},
		{"", "set carl --disable --enable", "--disable and --enable can't be used together", 2},
		{"another password", "set anna --password", "user anna changed", 0},
		{"", "list", "carl  viewer  -        password  disabled  never", 0},
		{"", "remove carl", "user carl removed", 0},
		{"", "remove carl", "Not found.", 1},
		{"", "add", "missing flags: --role", 2},
	} {
		if out, code := shell(tc.stdin, strings.Fields(tc.args)...); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("user %s: %d %s, want %d %s", tc.args, code, out, tc.code, tc.want)
		}
	}
	body, _ := json.Marshal(map[string]string{"name": "anna", "password": "another password"})
	g.as("").post("/admin/session", string(body)).mentions(t, 200, `"role":"admin"`)
}

// TestTokensFromTheShell makes a token, uses it and revokes it with the program.
func TestTokensFromTheShell(t *testing.T) {
	g := start(t, &site{name: "embedded"}, fixture(t, "contract.yaml"))
	shell := func(stdin string, args ...string) (stdout, all string, code int) {
		var out, errs strings.Builder
		code = Run(append([]string{"token"}, append(args, "--server", g.url(), "--admin-token", adminToken)...), Environment{t.Context(), g.env, strings.NewReader(stdin), &out, &errs, "test"})
		return out.String(), out.String() + errs.String(), code
	}
	made, all, code := shell("", "add", "--account", "acme", "--scopes", "webhook,iot")
	token := strings.TrimSpace(made)
	id := account.HashToken(token)[:12]
	if code != 0 || strings.Contains(token, " ") || !strings.Contains(all, "token "+id+" of account acme may use webhook, iot; it is not shown again") {
		t.Fatalf("%d %s", code, all)
	}
	g.as(token).get("/iot/devices").mentions(t, 200, "data")
	g.as("").with("X-Auth-Token", token).get("/v2/sms/credit").mentions(t, 403, "unauthorised")
	declared := account.HashToken("acme-all-0123456")[:12]
	for _, tc := range []struct {
		stdin, args, want string
		code              int
	}{
		{"", "add", "missing flags: --account", 2},
		{"", "add --account nobody", "account: want an account's name or id", 1},
		{"", "add --account acme --scopes root --source a/b", "scopes[0]: expected messaging, cellular, iot, ledger, webhook or carrier", 1},
		{"", "add --account acme --source s1 --secret", "nothing on standard input: write the password or secret to it", 1},
		{"shared\n", "add --account acme --source s1 --scopes carrier --secret", "may use carrier", 0},
		{"", "add --account acme --source s1", "There is a token with the source s1 already.", 1},
		{"", "list --account acme", id + "  acme     webhook,iot", 0},
		{"", "list", "  default", 0},
		{"", "revoke " + id, "token " + id + " revoked", 0},
		{"", "revoke " + id, "Not found.", 1},
		{"", "revoke " + declared, "the document default declared it: remove it there too", 0},
	} {
		if _, out, code := shell(tc.stdin, strings.Fields(tc.args)...); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("token %s: %d %s, want %d %s", tc.args, code, out, tc.code, tc.want)
		}
	}
	for _, gone := range []string{token, "acme-all-0123456"} {
		g.as(gone).get("/iot/devices").is(t, 401, `{"message":"Unauthenticated."}`)
	}
	if body := g.admin().get("/admin/inventory").body; strings.Contains(body, declared) {
		t.Errorf("the inventory still declares it: %s", body)
	}
	if body := g.admin().get("/admin/audit?operation=addToken").body; strings.Contains(body, token) || strings.Contains(body, "shared") || !strings.Contains(body, id) {
		t.Errorf("the audit log: %s", body)
	}
}
