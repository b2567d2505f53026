package contract

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/delivery/oidc/oidctest"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// createSampleUsers creates the users and the account that the samples name, and returns the name of
// the user that a sample removes.
func createSampleUsers(g *e2e.Gateway) (leaver string) {
	g.T.Helper()
	g.AddUser("viewer-of-acme", "account", "1")
	g.AddUser("leaver", "viewer", "")
	g.AddUser("changed", "viewer", "")
	g.Admin().Post("/admin/accounts", `{"name":"leaving"}`).Mentions(g.T, 201)
	g.SignedIn("viewer-of-acme")
	return "leaver"
}

// userSamples returns successful requests about users.
func userSamples(leaver string) []sample {
	const js = "application/json"
	return []sample{
		{"showSession", "GET", "/admin/session", "", ""},
		{"showProvider", "GET", "/admin/oidc", "", ""},
		{"listUsers", "GET", "/admin/users", "", ""},
		{"showUser", "GET", "/admin/users/changed", "", ""},
		{"addUser", "POST", "/admin/users", js, `{"name":"NEW","role":"viewer","password":"` + e2e.UserPassword + `"}`},
		{"changeUser", "PATCH", "/admin/users/changed", js, `{"role":"account","account":1,"password":"` + e2e.UserPassword + `","disabled":false}`},
		{"removeUser", "DELETE", "/admin/users/" + leaver, "", ""},
		{"listAudit", "GET", "/admin/audit", "", ""},
		{"listAudit", "GET", "/admin/audit?actor=admin%20token&operation=addUser&target=changed&account=1&outcome=done&from=2020-01-01T00:00:00Z&to=2099-01-01T00:00:00Z&limit=1&cursor=zz", "", ""},
	}
}

// createdToken is the answer to a request for a token.
type createdToken struct{ Data struct{ ID, Token string } }

// addToken creates a token for acme.
func addToken(g *e2e.Gateway, scope string) (token createdToken) {
	g.T.Helper()
	resp := g.Admin().Post("/admin/tokens", fmt.Sprintf(`{"account":"acme","scopes":[%q]}`, scope))
	resp.Mentions(g.T, 201, `"scopes":["`+scope+`"]`)
	resp.Decode(g.T, &token)
	return token
}

// tokenSamples returns successful requests about the tokens of accounts.
func tokenSamples(revoked string) []sample {
	return []sample{
		{"listTokensOfAccounts", "GET", "/admin/tokens", "", ""},
		{"listTokensOfAccounts", "GET", "/admin/tokens?account=acme", "", ""},
		{"addToken", "POST", "/admin/tokens", "application/json", `{"account":"acme","scopes":["carrier"],"source":"NEW","secret":"shared"}`},
		{"revokeToken", "DELETE", "/admin/tokens/" + revoked, "", ""},
	}
}

// accountSamples returns successful requests about accounts.
func accountSamples() []sample {
	const js = "application/json"
	return []sample{
		{"addAccount", "POST", "/admin/accounts", js, `{"name":"NEW","credit":5,"permissions":["mvno"],"callback_url":"https://example.com/hook","webhook_secret":["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}`},
		{"showAccount", "GET", "/admin/accounts/acme", "", ""},
		{"changeAccount", "PATCH", "/admin/accounts/leaving", js, `{"permissions":[],"callback_url":"","webhook_secret":[]}`},
		{"adjustCredit", "POST", "/admin/accounts/acme/credit", js, `{"amount":5,"reason":"Goodwill"}`},
		{"removeAccount", "DELETE", "/admin/accounts/leaving", "", ""},
	}
}

// accountMistakes returns requests that the operations on accounts refuse.
func accountMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
		{sample{"", "POST", "/admin/accounts", js, `{"name":"","credit":-1,"permissions":["root"],"callback_url":"ftp://x","webhook_secret":["x"]}`}, 422},
		{sample{"", "POST", "/admin/accounts", js, `{"name":"acme"}`}, 409},
		{sample{"", "GET", "/admin/accounts/nobody", "", ""}, 404},
		{sample{"", "PATCH", "/admin/accounts/nobody", js, `{}`}, 404},
		{sample{"", "PATCH", "/admin/accounts/acme", js, `{"name":"other"}`}, 422},
		{sample{"", "DELETE", "/admin/accounts/nobody", "", ""}, 404},
		{sample{"", "DELETE", "/admin/accounts/acme", "", ""}, 422},
		{sample{"", "POST", "/admin/accounts/nobody/credit", js, `{"amount":1,"reason":"x"}`}, 404},
		{sample{"", "POST", "/admin/accounts/acme/credit", js, `{"amount":0}`}, 422},
		{sample{"", "POST", "/admin/accounts/acme/credit", js, `{"amount":-1000000,"reason":"x"}`}, 402},
	}
}

// tokenMistakes returns requests that the operations on tokens refuse.
func tokenMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
		{sample{"", "GET", "/admin/tokens?account=nobody", "", ""}, 422},
		{sample{"", "POST", "/admin/tokens", js, `{}`}, 422},
		{sample{"", "POST", "/admin/tokens", js, `{"account":"acme","scopes":["root"],"source":"a b"}`}, 422},
		{sample{"", "POST", "/admin/tokens", js, `{"account":"acme","source":"hq"}`}, 409},
		{sample{"", "DELETE", "/admin/tokens/000000000000", "", ""}, 404},
	}
}

// userMistakes returns requests that the operations on users refuse.
func userMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
		{sample{"", "POST", "/admin/users", js, `{"name":"a b","role":"root","password":"short"}`}, 422},
		{sample{"", "POST", "/admin/users", js, `{"name":"changed","role":"viewer","password":"` + e2e.UserPassword + `"}`}, 409},
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
		"showSession", "listEvents", "listDeliveries", "tryDecoder", "showDecoder", "listRulesOfAccount", "listAlarmsOfAccount", "listCredit", "listMessages",
		"listDevicesOfAccounts", "showDevice", "listDecodersOfAccounts",
		"listSIMsOfAccounts", "showSIM", "usageOfSIM", "listJobsOfAccounts", "listLedgersOfAccounts", "listEntriesOfLedger", "listTokensOfLedger", "showLedgerToken", "listBalances",
		"listRelaysOfAccounts", "showRelay",
	}, operation)
}

// checkSessions checks the answers to requests with a session and to sign-ins.
func checkSessions(g *e2e.Gateway) {
	g.T.Helper()
	validLogin := `{"name":"viewer-of-acme","password":"` + e2e.UserPassword + `"}`
	viewer := g.SignedIn("viewer-of-acme")
	g.AddUser("brief", "operator", "")
	session := g.SignIn("brief")
	for _, tc := range []struct {
		client e2e.Client
		method string
		target string
		body   string
		want   int
	}{
		{viewer, "GET", "/admin/deliveries?account=999", "", 403}, {viewer, "GET", "/admin/events?account=999", "", 403}, {viewer, "GET", "/admin/messages?account=999", "", 403},
		{viewer, "GET", "/admin/rules?account=999", "", 403}, {viewer, "GET", "/admin/alarms?account=999", "", 403}, {viewer, "GET", "/admin/credit?account=999", "", 403},
		{viewer, "GET", "/admin/decoders/lpp?account=999", "", 403},
		{viewer, "POST", "/admin/decoders/try", `{"account":999,"codec":"json","frames":[{"hex":"01"}]}`, 403},
		{viewer, "GET", "/admin/devices?account=999", "", 403}, {viewer, "GET", "/admin/devices/none?account=999", "", 403},
		{viewer, "GET", "/admin/decoders?account=999", "", 403},
		{viewer, "GET", "/admin/sims?account=999", "", 403}, {viewer, "GET", "/admin/sims/" + e2e.ActiveSIM + "?account=999", "", 403}, {viewer, "GET", "/admin/sims/" + e2e.ActiveSIM + "/usage?account=999", "", 403},
		{viewer, "GET", "/admin/relays?account=999", "", 403}, {viewer, "GET", "/admin/relays/geo/g1?account=999", "", 403},
		{viewer, "GET", "/admin/jobs?account=999", "", 403}, {viewer, "GET", "/admin/ledgers?account=999", "", 403}, {viewer, "GET", "/admin/ledgers/l1/entries?account=999", "", 403},
		{viewer, "GET", "/admin/ledgers/l1/tokens?account=999", "", 403}, {viewer, "GET", "/admin/ledger-tokens/none?account=999", "", 403}, {viewer, "GET", "/admin/balances?account=999", "", 403},
		{viewer, "POST", "/admin/recover", "", 403}, {viewer, "GET", "/admin/session", "", 200}, {viewer, "GET", "/admin/decoders/lpp", "", 200},
		{g.WithToken("").With("Content-Encoding", "gzip"), "POST", "/admin/session", "no gzip", 400},
		{g.WithToken(""), "POST", "/admin/session", `{"name":"viewer-of-acme","password":"another one 12"}`, 401},
		{g.WithToken("").With("Origin", "https://evil.example.com"), "POST", "/admin/session", validLogin, 403},
		{g.WithToken(""), "POST", "/admin/session", strings.Repeat(" ", 2<<20), 413},
		{g.WithToken("").With("Content-Type", "text/plain"), "POST", "/admin/session", validLogin, 415},
		{g.WithToken(""), "POST", "/admin/session", `{}`, 422},
		{g.WithToken(""), "PUT", "/admin/session/password", `{}`, 401}, {g.WithToken(""), "DELETE", "/admin/session", "", 401},
		{session, "PUT", "/admin/session/password", `{"password":"` + e2e.UserPassword + `","new_password":"short"}`, 422},
		{session.With("X-CSRF-Token", ""), "DELETE", "/admin/session", "", 403}, {session, "DELETE", "/admin/session", "", 204}, {session, "GET", "/admin/session", "", 401},
		{g.SignIn("brief"), "PUT", "/admin/session/password", `{"password":"` + e2e.UserPassword + `","new_password":"` + e2e.UserPassword + `"}`, 204},
	} {
		if resp := tc.client.Do(tc.method, tc.target, tc.body); resp.Status != tc.want {
			g.T.Errorf("%s %s: %d %s, want %d", resp.Request, tc.body, resp.Status, resp.Body, tc.want)
		}
	}
	if len(g.Members) == 0 { // each gateway counts attempts on its own
		checkSignInLimit(g)
	}
}

// checkSignInLimit guesses passwords until the address is refused, with and without a session.
func checkSignInLimit(g *e2e.Gateway) {
	g.T.Helper()
	session := g.SignIn("brief").With("X-Forwarded-For", "203.0.113.9")
	guesser := g.WithToken("").With("X-Forwarded-For", "203.0.113.9")
	for n := range 1000 { // an address has another attempt every six seconds
		if resp := guesser.Post("/admin/session", fmt.Sprintf(`{"name":"guessed","password":"guess %d"}`, n)); resp.Status == 429 {
			break
		} else if resp.Status != 401 {
			g.T.Fatalf("sign-in with a wrong password: %d %s, want 401 or 429", resp.Status, resp.Body)
		}
	}
	guesser.Post("/admin/session", `{"name":"other","password":"guess"}`).Mentions(g.T, 429, "Too Many Attempts.")
	session.Do("PUT", "/admin/session/password", `{"password":"guess","new_password":"another password"}`).Mentions(g.T, 429, "Too Many Attempts.")
}

// testContractProvider signs in through an OpenID provider, as a browser does.
func testContractProvider(t *testing.T, checker *contracttest.Checker) {
	p := oidctest.Start(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"), "PENSTOCK_OIDC_ISSUER="+p.URL, "PENSTOCK_OIDC_CLIENT_ID="+oidctest.ClientID,
		"PENSTOCK_OIDC_CLIENT_SECRET="+oidctest.ClientSecret, "PENSTOCK_OIDC_OPERATOR=ops", "PENSTOCK_OIDC_ACCOUNT_CLAIM=account")
	checkTraffic(g, checker)
	g.WithToken("").Get("/admin/oidc").Expect(t, 200, `{"data":{"enabled":true}}`)
	p.SetClaims(map[string]any{"preferred_username": "Anna", "groups": []string{"ops"}})
	callback, cookie := visitProvider(g)
	resp := g.WithToken("").With("Cookie", cookie).Get(callback)
	if resp.Status != 302 || resp.Header.Get("Location") != "/console" {
		t.Fatalf("callback: status = %d, location = %s, want 302 to /console", resp.Status, resp.Header.Get("Location"))
	}
	sessionCookie := sessionOf(resp)
	type session struct{ Name, Role, Provider string }
	var answer struct{ Data session }
	g.WithToken("").With("Cookie", sessionCookie).Get("/admin/session").Decode(t, &answer)
	relaytest.Equal(t, "the session", answer.Data, session{"anna", "operator", "oidc"})
	for name, tc := range map[string]struct {
		claims map[string]any
		change func(callback, cookie *string)
		want   string
	}{
		"a callback that is used again":      {change: func(callback, cookie *string) { g.WithToken("").With("Cookie", *cookie).Get(*callback) }, want: "refused"},
		"another browser":                    {change: func(_, cookie *string) { *cookie = "" }, want: "refused"},
		"another state":                      {change: func(callback, _ *string) { *callback = strings.Replace(*callback, "state=", "state=x", 1) }, want: "refused"},
		"a refusal of the provider":          {change: func(callback, _ *string) { *callback += "&error=access_denied" }, want: "refused"},
		"an account that does not exist":     {claims: map[string]any{"preferred_username": "anna", "account": "nobody"}, want: "refused"},
		"no role":                            {claims: map[string]any{"preferred_username": "anna", "groups": "guests"}, want: "refused"},
		"a name that another user has":       {claims: map[string]any{"sub": "43", "preferred_username": "anna", "groups": "ops"}, want: "refused"},
		"a user of one account is signed in": {claims: map[string]any{"sub": "44", "preferred_username": "carl", "account": "acme"}, want: ""},
		"an account may be named by its id":  {claims: map[string]any{"sub": "45", "preferred_username": "cleo", "account": 1}, want: ""},
		"the same user may sign in again":    {want: ""},
	} {
		if p.SetClaims(tc.claims); tc.claims == nil {
			p.SetClaims(map[string]any{"preferred_username": "Anna", "groups": []string{"ops"}})
		}
		callback, cookie := visitProvider(g)
		if tc.change != nil {
			tc.change(&callback, &cookie)
		}
		want := "/console"
		if tc.want != "" {
			want = "/console#/?sign_in=" + tc.want
		}
		if resp := g.WithToken("").With("Cookie", cookie).Get(callback); resp.Status != 302 || resp.Header.Get("Location") != want || (sessionOf(resp) == "") != (tc.want != "") {
			t.Errorf("%s: %d to %s with the session %q, want 302 to %s", name, resp.Status, resp.Header.Get("Location"), sessionOf(resp), want)
		}
	}
}

// sessionOf returns the session cookie that a response sets, or "" if it sets none.
func sessionOf(resp e2e.Response) string {
	for _, set := range resp.Header.Values("Set-Cookie") {
		if cookie, _, _ := strings.Cut(set, ";"); strings.HasPrefix(cookie, "penstock_session=") && !strings.HasSuffix(cookie, "=") {
			return cookie
		}
	}
	return ""
}

// visitProvider begins a sign-in, signs in at the provider, and returns the path of the
// callback and the cookie of the sign-in.
func visitProvider(g *e2e.Gateway) (callback, cookie string) {
	g.T.Helper()
	start := g.WithToken("").Get("/admin/oidc/start")
	cookie, attributes, _ := strings.Cut(start.Header.Get("Set-Cookie"), ";")
	if start.Status != 302 || !strings.Contains(attributes, "HttpOnly") || !strings.Contains(attributes, "SameSite=Lax") {
		g.T.Fatalf("start of a sign-in: %d %s %s, want 302 with a cookie that is HttpOnly and SameSite=Lax", start.Status, start.Body, start.Header)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(start.Header.Get("Location"))
	relaytest.NoError(g.T, err)
	_ = resp.Body.Close()
	target, err := resp.Location()
	relaytest.NoError(g.T, err)
	return target.RequestURI(), cookie
}
