package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

const secondAccount = `
accounts:
  - name: globex
    tokens: [{token: globex-all-0123456}]
`

// actingClients returns clients that act as acme: users by role, and the admin token.
func actingClients(g *e2e.Gateway) map[string]e2e.Client {
	g.AddUser("watcher", "viewer", "")
	g.AddUser("olga", "operator", "")
	g.AddUser("anna", "admin", "")
	g.AddUser("carl", "account", "1")
	return map[string]e2e.Client{
		"viewer": g.SignedIn("watcher").With("X-Account", "acme"), "operator": g.SignedIn("olga").With("X-Account", "1"),
		"admin": g.SignedIn("anna").With("X-Account", "acme"), "account": g.SignedIn("carl").With("X-Account", "acme"),
		"admin token": g.Admin().With("X-Account", "acme"),
	}
}

// TestActingAsAnAccount sends requests of each kind to each interface with each role.
func TestActingAsAnAccount(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	g.Apply("", secondAccount)
	customer := g.WithToken("acme-all-0123456")
	rule := customer.Create("/iot/rules", `{"name":"Warm","on":"reading","when":"values.temperature > 1","actions":[{"action":"http_post","parameters":["https://example.com/secret"]}]}`)
	allRoles, rolesWithSecrets, rolesThatChange := "viewer account operator admin admin token", "account operator admin admin token", "operator admin admin token"
	clients := actingClients(g)
	for _, tc := range []struct {
		request, body string
		allowed       string
		status        int // status for an allowed role
	}{
		{"GET /iot/devices", "", allRoles, 200},
		{"GET /IOT/Devices/", "", allRoles, 200},
		{"HEAD /iot/devices", "", allRoles, 200},
		{"GET /iot/rules", "", rolesWithSecrets, 200},
		{"GET /iot/rules/" + rule, "", rolesWithSecrets, 200},
		{"POST /iot/rules/try", `{}`, rolesWithSecrets, 422},
		{"PATCH /iot/rules/" + rule, `{"enabled":false}`, rolesThatChange, 200},
		{"PATCH /iot/decoders/lpp", `{"name":"Tester"}`, rolesThatChange, 200},
		{"GET /v2/sms/credit", "", allRoles, 200},
		{"GET /v2/sms/pending", "", allRoles, 200},
		{"GET /v2/sms-relay/geo", "", allRoles, 200},
		{"GET /v2/sms-relay/vmn/desk/inbox", "", rolesWithSecrets, 200},
		{"GET /V2/SMS-Relay/vmn/desk/inbox/", "", rolesWithSecrets, 200},
		{"GET /v2/network-lookup/447700900123", "", rolesThatChange, 200},
		{"GET /V2/Network-Lookup/447700900123", "", rolesThatChange, 200},
		{"POST /v2/sms/preview", `{}`, rolesWithSecrets, 422},
		{"POST /v2/sms/send", `{"destinations":["447700900555"],"originator":"Shop","message":"the secret text"}`, rolesThatChange, 200},
		{"PATCH /v2/sms-relay/geo/g1", `{"action":"black_hole"}`, rolesThatChange, 200},
		{"GET /v3/mno", "", allRoles, 200},
		{"GET /v3/mno/8944000000000000001", "", allRoles, 200},
		{"PUT /v3/mno/8944000000000000001/usage-limit", `{"monthly_usage_limit":5000}`, rolesThatChange, 200},
		{"GET /ledgers", "", allRoles, 200},
		{"POST /ledgers/l1/tokens", `{"metadata":{"name":"Pump"}}`, rolesThatChange, 200},
		{"POST /ledgers/tokens/validate", `{}`, rolesWithSecrets, 422},
		{"POST /iot/nothing", `{}`, rolesThatChange, 404},
	} {
		method, path, _ := strings.Cut(tc.request, " ")
		for role, client := range clients {
			resp := client.Do(method, path, tc.body)
			want := 403
			if strings.Contains(" "+tc.allowed+" ", " "+role+" ") {
				want = tc.status
			}
			if resp.Status != want {
				t.Errorf("%s as %s: %d %s, want %d", tc.request, role, resp.Status, resp.Body, want)
			}
			if want == 403 && method != http.MethodHead {
				resp.Mentions(t, 403, "The role "+role+" may not do this")
			}
		}
	}
}

// TestWhoMayActAsWhichAccount sends requests for accounts with every kind of credential.
func TestWhoMayActAsWhichAccount(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	g.Apply("", secondAccount)
	clients := actingClients(g)
	customer := g.WithToken("acme-all-0123456")
	const denied = "This action is unauthorised."
	for _, surface := range []string{"/iot/devices", "/v2/sms/credit", "/v3/mno", "/ledgers"} {
		for _, tc := range []struct {
			name   string
			client e2e.Client
			status int
			words  string
		}{
			{"an operator as another account", clients["operator"].With("X-Account", "globex"), 200, ""},
			{"an operator as an unknown account", clients["operator"].With("X-Account", "nobody"), 403, `X-Account names an unknown account: \"nobody\".`},
			{"the admin token with an unknown id", clients["admin token"].With("X-Account", "99"), 403, "X-Account names an unknown account"},
			{"a customer's user as another account", clients["account"].With("X-Account", "globex"), 403, "A user with the role account may act only as its own account."},
			{"a customer's user as an unknown account", clients["account"].With("X-Account", "nobody"), 403, "A user with the role account may act only as its own account."},
			{"a session without the header", clients["operator"].With("X-Account", ""), 401, "Unauthenticated."},
			{"the admin token without the header", g.Admin(), 401, "Unauthenticated."},
			{"the header without a credential", g.WithToken("").With("X-Account", "acme"), 401, "Unauthenticated."},
			{"a token that names its account", customer.With("X-Account", "acme"), 200, ""},
			{"a token that names its account by the id", customer.With("X-Account", "1"), 200, ""},
			{"a token that names another account", customer.With("X-Account", "globex"), 403, denied},
			{"a token that names an unknown account", customer.With("X-Account", "nobody"), 403, denied},
			{"a wrong token", g.WithToken("wrong").With("X-Account", "acme"), 401, "Unauthenticated."},
			{"the admin token in X-Auth-Token", g.WithToken("").With("X-Auth-Token", e2e.AdminToken).With("X-Account", "acme"), map[bool]int{true: 200, false: 401}[surface[:2] == "/v"], ""},
		} {
			resp := tc.client.Get(surface)
			if resp.Status != tc.status || !strings.Contains(resp.Body, tc.words) {
				t.Errorf("%s, %s: %d %s, want %d %s", tc.name, surface, resp.Status, resp.Body, tc.status, tc.words)
			}
			if surface == "/v3/mno" && tc.status > 200 {
				resp.Mentions(t, tc.status, `"success":false`)
			}
		}
	}
	rename := func(c e2e.Client) e2e.Response { return c.Do("PATCH", "/iot/decoders/lpp", `{"name":"New"}`) }
	rename(clients["operator"].With("X-CSRF-Token", "")).Mentions(t, 403, "lacks the X-CSRF-Token")
	clients["operator"].With("X-CSRF-Token", "").Get("/v2/network-lookup/447700900123").Mentions(t, 403, "lacks the X-CSRF-Token")
	rename(clients["operator"].With("Origin", "https://evil.example.com")).Mentions(t, 403, "Requests from other sites are refused.")
	rename(clients["operator"]).Mentions(t, 200, `"name":"New"`)
	g.WithToken("acme-hook-0123456").With("X-Account", "globex").Post("/webhooks/generic?decoder_id=sent", `{"deviceId":"hall","temperature":20}`).Mentions(t, 200, `"value":20`)
}

// TestAViewerActsWithoutSecrets compares the answers to viewers and operators.
func TestAViewerActsWithoutSecrets(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	clients := actingClients(g)
	operator := clients["operator"]
	operator.Post("/v2/sms/send", `{"destinations":["447700900555"],"originator":"Shop","message":"the secret text","send_time":"`+time.Now().UTC().AddDate(0, 0, 1).Format(time.DateTime)+`"}`).Mentions(t, 200)
	var id string
	operator.Post("/ledgers/l1/tokens", `{"metadata":{"name":"Pump"},"private_metadata":{"owner":"someone"}}`).Decode(t, &id)
	job := "/ledgers/jobs/" + id
	relaytest.Eventually(t, "the token is generated", func() (any, bool) {
		resp := operator.Get(job)
		return resp.Body, strings.Contains(resp.Body, `"private_token":"`)
	})
	for path, secret := range map[string]string{
		"/v2/sms/pending": "the secret text", "/v2/sms-relay/geo": "/in?m=%m", "/v2/sms-relay/geo/g1": "/in?m=%m",
		"/v3/mno": `"12345678"`, "/v3/mno/8944000000000000001": `"12345678"`, job: `"private_token":"`,
	} {
		operator.Get(path).Mentions(t, 200, secret)
		if resp := clients["viewer"].Get(path); resp.Status != 200 || strings.Contains(resp.Body, secret) {
			t.Errorf("%s as a viewer: %d %s, want an answer without %s", path, resp.Status, resp.Body, secret)
		}
	}
	clients["viewer"].Get("/v2/sms-relay/geo/g1").Mentions(t, 200, `"parameters":["http://127.0.0.1:9/…"]`)
}

// TestChangesAsAnAccountAreRecorded checks the audit log after changes by users that act as an account.
func TestChangesAsAnAccountAreRecorded(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	operator := actingClients(g)["operator"]
	operator.Do("PATCH", "/v2/sms-relay/geo/g1", `{"action":"http_get","parameters":["https://example.com/in?key=abc"]}`).Mentions(t, 200)
	operator.Do("PATCH", "/v2/sms-relay/geo/g1", `{"action":"nonsense"}`).Mentions(t, 422)
	operator.Post("/v2/sms/send", `{"destinations":["447700900555"],"originator":"Shop","message":"the secret text"}`).Mentions(t, 200, "the secret text")
	operator.Put("/v3/mno/8944000000000000001/usage-limit", `{"monthly_usage_limit":"nonsense"}`).Mentions(t, 422)
	operator.Post("/ledgers/l1/tokens", `{"private_metadata":{"owner":"someone"}}`).Mentions(t, 200)
	operator.Get("/v2/network-lookup/447700900123").Mentions(t, 200)
	operator.Get("/iot/devices").Mentions(t, 200)
	g.Admin().With("X-Account", "acme").Do("PATCH", "/iot/decoders/lpp", `{"name":"Tester"}`).Mentions(t, 200)
	g.WithToken("acme-all-0123456").With("X-Account", "acme").Do("PATCH", "/iot/decoders/lpp", `{"name":"Own"}`).Mentions(t, 200)
	var log struct {
		Data []struct {
			Actor, Role, Action, Target, Outcome string
			AccountName                          string `json:"account_name"`
			Request, Before, After               json.RawMessage
		}
	}
	resp := g.Admin().Get("/admin/audit?account=acme")
	resp.Decode(t, &log)
	var got []string
	for _, e := range log.Data {
		got = append(got, fmt.Sprintf("%s (%s) %s %s: %s", e.Actor, e.Role, e.Action, e.Target, e.Outcome))
	}
	relaytest.Equal(t, "the entries", strings.Join(got[:min(len(got), 7)], "\n"), strings.Join([]string{
		"admin token (admin) Change a decoder lpp: done",
		"olga (operator) Look up the network of a number 447700900123: done",
		"olga (operator) Token generation l1: done",
		"olga (operator) Set the monthly limit of a SIM 8944000000000000001: refused",
		"olga (operator) Send a message : done",
		"olga (operator) Change the action of a geographic prefix g1: refused",
		"olga (operator) Change the action of a geographic prefix g1: done",
	}, "\n"))
	resp.Mentions(t, 200, "447700900555", "https://example.com/in?key=***", `"name":"Tester"`)
	for _, secret := range []string{"the secret text", "key=abc", "someone", "Own"} {
		if strings.Contains(resp.Body, secret) {
			t.Errorf("the audit log contains %q: %s", secret, resp.Body)
		}
	}
}
