package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/oidc"
	"github.com/penstock/penstock/delivery/oidc/oidctest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

func clientOptions(p *oidctest.Provider) oidc.Options {
	return oidc.Options{
		Issuer: p.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: "http://gw.example.com/admin/oidc/callback",
		Scopes: []string{"profile"}, AccountClaim: "account",
		Roles: map[user.Role][]string{user.Admin: {"ops-admins"}, user.Operator: {"ops"}, user.Viewer: {"staff", "guests"}},
	}
}

// signIn signs in through the provider like a browser. change alters the attempt and the query
// with which the browser returns.
func signIn(t *testing.T, o oidc.Options, change func(a *user.Attempt, query url.Values)) (user.Identity, error) {
	t.Helper()
	p := oidc.New(o)
	attempt, authURL, err := p.Begin(t.Context())
	if err != nil {
		return user.Identity{}, err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp := relaytest.Must(browser.Get(authURL))(t)
	_ = resp.Body.Close()
	location, err := resp.Location()
	if err != nil {
		t.Fatalf("the provider responded with status %d: %v", resp.StatusCode, err)
	}
	query := location.Query()
	if query.Get("state") != attempt.State || !strings.HasPrefix(location.String(), o.RedirectURL) {
		t.Fatalf("the provider redirects to %s, want the redirect URL with the state", location)
	}
	if change != nil {
		change(&attempt, query)
	}
	return p.Finish(t.Context(), attempt, query.Get("code"))
}

func TestClaimsMapToARole(t *testing.T) {
	p := oidctest.Start(t)
	for _, tc := range []struct {
		name   string
		claims map[string]any
		want   user.Identity
	}{
		{"a group", map[string]any{"preferred_username": "anna", "groups": []string{"x", "ops"}}, user.Identity{Name: "anna", Role: user.Operator}},
		{"several groups", map[string]any{"preferred_username": "anna", "groups": []string{"staff", "ops-admins", "ops"}}, user.Identity{Name: "anna", Role: user.Admin}},
		{"a single group", map[string]any{"preferred_username": "anna", "groups": "guests"}, user.Identity{Name: "anna", Role: user.Viewer}},
		{"an account", map[string]any{"preferred_username": "anna", "groups": []string{"customers"}, "account": "acme"}, user.Identity{Name: "anna", Role: user.Account, Account: "acme"}},
		{
			"several audiences, authorized for this client",
			map[string]any{"preferred_username": "anna", "groups": "ops", "aud": []string{"grafana", oidctest.ClientID}, "azp": oidctest.ClientID},
			user.Identity{Name: "anna", Role: user.Operator},
		},
		{"an account by its id", map[string]any{"preferred_username": "anna", "account": 17}, user.Identity{Name: "anna", Role: user.Account, Account: "17"}},
	} {
		p.SetClaims(tc.claims)
		tc.want.Subject = p.URL + " 42"
		got, err := signIn(t, clientOptions(p), nil)
		relaytest.NoError(t, err)
		relaytest.Equal(t, tc.name+": the identity", got, tc.want)
	}
	p.SetClaims(map[string]any{"email": "eve@example.com", "email_verified": true, "groups": "staff"})
	o := clientOptions(p)
	o.NameClaim = "email"
	got, err := signIn(t, o, nil)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the name from the claim email", got.Name, "eve@example.com")
}

func TestInvalidSignInsAreRefused(t *testing.T) {
	staff := map[string]any{"preferred_username": "anna", "groups": "staff"}
	for name, tc := range map[string]struct {
		claims   map[string]any
		token    func(claims map[string]any)
		options  func(o *oidc.Options)
		change   func(a *user.Attempt, query url.Values)
		otherKey bool
		want     string
	}{
		"no role":                    {claims: map[string]any{"preferred_username": "anna", "groups": []string{"x"}}, want: "gives anna no role"},
		"several accounts":           {claims: map[string]any{"preferred_username": "anna", "account": []string{"a", "b"}}, want: "no role"},
		"another nonce":              {token: func(c map[string]any) { c["nonce"] = "other" }, want: "another nonce"},
		"no nonce":                   {token: func(c map[string]any) { delete(c, "nonce") }, want: "another nonce"},
		"a nonce of another attempt": {change: func(a *user.Attempt, _ url.Values) { a.Nonce = "other" }, want: "another nonce"},
		"an expired token":           {token: func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }, want: "expired"},
		"another audience":           {token: func(c map[string]any) { c["aud"] = "grafana" }, want: "audience"},
		"no subject":                 {token: func(c map[string]any) { delete(c, "sub") }, want: "no subject"},
		"an empty subject":           {token: func(c map[string]any) { c["sub"] = "" }, want: "no subject"},
		"a subject of blanks":        {token: func(c map[string]any) { c["sub"] = " \t" }, want: "no subject"},
		"another authorized party":   {token: func(c map[string]any) { c["azp"] = "grafana" }, want: "for another client"},
		"an authorized party that is not a string": {
			token: func(c map[string]any) { c["azp"] = []string{oidctest.ClientID} }, want: "for another client",
		},
		"an empty authorized party": {token: func(c map[string]any) { c["azp"] = "" }, want: "for another client"},
		"another authorized party among several audiences": {
			token: func(c map[string]any) { c["aud"], c["azp"] = []string{oidctest.ClientID, "grafana"}, "grafana" }, want: "for another client",
		},
		"several audiences without an authorized party": {
			token: func(c map[string]any) { c["aud"] = []string{oidctest.ClientID, "grafana"} }, want: "several audiences",
		},
		"another issuer":        {token: func(c map[string]any) { c["iss"] = "https://idp.example.com" }, want: "different provider"},
		"another key":           {otherKey: true, want: "verify signature"},
		"another PKCE verifier": {change: func(a *user.Attempt, _ url.Values) { a.Verifier = strings.Repeat("v", 43) }, want: "refused the code: invalid_grant"},
		"another code":          {change: func(_ *user.Attempt, query url.Values) { query.Set("code", "x") }, want: "refused the code: invalid_grant"},
		"another client secret": {options: func(o *oidc.Options) { o.ClientSecret = "wrong" }, want: "refused the code: invalid_client"},
		"an address that is not verified, as a string": {
			claims: map[string]any{"email": "eve@example.com", "email_verified": "false", "groups": "staff"}, options: func(o *oidc.Options) { o.NameClaim = "email" }, want: "not verified",
		},
		"an address that is not verified": {
			claims: map[string]any{"email": "eve@example.com", "email_verified": false, "groups": "staff"}, options: func(o *oidc.Options) { o.NameClaim = "email" }, want: "not verified",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.Start(t)
			if tc.claims == nil {
				tc.claims = staff
			}
			p.Tamper(tc.claims, tc.token)
			if tc.otherKey {
				p.SignWithAnotherKey()
			}
			o := clientOptions(p)
			if tc.options != nil {
				tc.options(&o)
			}
			_, err := signIn(t, o, tc.change)
			relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindForbidden)
			if err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %q, want it to contain %q", err, tc.want)
			}
		})
	}
}

func TestAProviderThatIsDownIsUnavailable(t *testing.T) {
	p := oidctest.Start(t)
	o := clientOptions(p)
	o.Issuer = "http://127.0.0.1:1"
	_, err := signIn(t, o, nil)
	relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
}

func TestAProviderThatCannotServeItsKeysIsUnavailable(t *testing.T) {
	p := oidctest.Start(t)
	p.FailKeys(500)
	_, err := signIn(t, clientOptions(p), nil)
	relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
}
