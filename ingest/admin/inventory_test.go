package admin

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inventory/inventorytest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

const (
	acme   = inventorytest.Acme
	secret = inventorytest.Secret
)

// apply applies a document and returns the answer.
func (o *operatorAPI) apply(document, query string) string {
	o.t.Helper()
	return o.call("PUT /admin/inventory"+query, document)
}

// mustApply applies a document and ends the test if it is refused.
func (o *operatorAPI) mustApply(document, query string) {
	o.t.Helper()
	if got := o.apply(document, query); !strings.HasPrefix(got, "200 ") {
		o.t.Fatalf("answer to %s = %s, want 200", document, got)
	}
}

func TestAnInventoryIsApplied(t *testing.T) {
	o := newOperatorAPI(t)
	if got := o.call("GET /admin/inventory", ""); got != "200 {}" {
		t.Errorf("inventory before the first apply = %s, want {}", got)
	}
	const firstAnswer = `200 {"data":{"document":"default","dry_run":false,"accounts":[{"id":1,"name":"acme"}],"added":["sensor type temperature","sensor type humidity",` +
		`"account acme","account acme: location loc1","account acme: decoder d1","account acme: geo relay g1","account acme: vmn relay v1",` +
		`"account acme: token 21008ad0a368 (hq)","account acme: token c05bb0ae8562"],"changed":[],"removed":[],"kept":[],"allow_removals":0}}`
	const secondAnswer = `200 {"data":{"document":"default","dry_run":false,"accounts":[{"id":1,"name":"acme"}],"added":[],"changed":[],"removed":[],"kept":[],"allow_removals":0}}`
	for _, want := range []string{firstAnswer, secondAnswer} {
		if got := o.apply(acme, ""); got != want {
			t.Fatalf("answer = %s, want %s", got, want)
		}
	}
	o.mustApply(`accounts: [{name: globex, tokens: [{token: other-token-0123456}]}]`, "")
	const refused = `422 {"errors":{"allow_removals":["this prune removes 1 of 9 records (token: 1 of 3) that the document \"default\" declared; check them with a dry run, then allow 1"]}`
	if got := o.apply(acme, "?prune=true"); !strings.HasPrefix(got, refused) {
		t.Errorf("answer = %s, want %s", got, refused)
	}
	const pruned = `200 {"data":{"document":"default","dry_run":false,"accounts":[{"id":1,"name":"acme"}],"added":[],"changed":[],"removed":["account globex: token bce1c0bb6e8d"],` +
		`"kept":["account globex: it may hold messages, history or credit"],"allow_removals":1}}`
	if got := o.apply(acme, "?prune=true&allow_removals=1"); got != pruned {
		t.Errorf("answer = %s, want %s", got, pruned)
	}
}

func TestMaskedSecretsAreKeptByAnApply(t *testing.T) {
	o := newOperatorAPI(t)
	o.mustApply(acme, "")
	masked := strings.TrimPrefix(o.call("GET /admin/inventory", ""), "200 ")
	for _, hidden := range []string{`"hook-token-0123456"`, `"plain-token-0123456"`, "shh", secret} {
		if strings.Contains(masked, hidden) {
			t.Errorf("inventory = %s, want %s masked", masked, hidden)
		}
	}
	o.mustApply(masked, "")
	if got := strings.TrimPrefix(o.call("GET /admin/inventory", ""), "200 "); got != masked {
		t.Errorf("inventory after it was applied:\n got %s\nwant %s", got, masked)
	}
	hook, err := o.db.Accounts.Token(t.Context(), account.HashToken("hook-token-0123456"))
	a, err2 := o.db.Accounts.Account(t.Context(), 1)
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the secret of the token", hook.Secret, "shh")
	relaytest.Equal(t, "the webhook secrets", a.WebhookSecrets, []string{secret})
}

func TestAnInvalidDocumentChangesNothing(t *testing.T) {
	o := newOperatorAPI(t)
	o.mustApply(acme, "")
	inventoryBefore := o.call("GET /admin/inventory", "")
	for _, tc := range []struct{ name, document, query, path string }{
		{"an empty document", "", "", ""},
		{"a wrong type", "accounts: [{name: x, permissions: 7}]", "", "accounts[0].permissions"},
		{"a private address", `accounts: [{name: x, relays: {vmn: [{id: v, number: "449", action: http_get, parameters: ["https://10.0.0.1/"]}]}}]`, "", "accounts[0].relays.vmn[0]"},
		{"a number of another account", `accounts: [{name: x, relays: {vmn: [{id: v, number: "447860000001", action: inactive}]}}]`, "", "accounts[0].relays.vmn[0].number"},
		{"an id of another account", "sensor_types: [{id: new, name: New}]\naccounts: [{name: globex, id: 1}]", "", "accounts[0].id"},
		{"a changed id of an account", "sensor_types: [{id: new, name: New}]\naccounts: [{name: acme, id: 9}]", "", "accounts[0].id"},
		{"an action without its SIM", `accounts: [{name: acme, permissions: [mvno], sims: [{iccid: "8944000000000000001"}], relays: {geo: [{id: g1, prefix: "4478000", action: mvno}]}}]`, "", "accounts[0].relays.geo[0].iccid"},
		{"an action without its SIM, with a prune", `accounts: [{name: other, permissions: [mvno], sims: [{iccid: "8944000000000000001"}], relays: {geo: [{id: g, prefix: "4478000", action: mvno}]}}]`, "?prune=true", "accounts[0].relays.geo[0].iccid"},
		{"an unknown reset", acme, "?reset=everything", "reset"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := o.apply(tc.document, tc.query)
			answertest.HasPrefix(t, "the answer", got, "422 ")
			answertest.Contains(t, "the answer", got, `"`+tc.path)
			if got := o.call("GET /admin/inventory", ""); got != inventoryBefore {
				t.Errorf("inventory = %s, want %s", got, inventoryBefore)
			}
			types, err := o.db.Devices.SensorTypes(t.Context())
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of sensor types", len(types), 2)
		})
	}
}

func TestTheDriftOfADocumentIsListed(t *testing.T) {
	o, ctx := newOperatorAPI(t), t.Context()
	o.mustApply(acme, "")
	relaytest.Equal(t, "the drift after an apply", o.call("GET /admin/inventory/drift", ""), `200 {"data":[],"missing":[]}`)
	o.call("PATCH /admin/accounts/acme", `{"callback_url":"https://example.com/other"}`)
	relaytest.NoError(t, o.db.Devices.DeleteDecoder(ctx, 1, "d1"))
	got := o.call("GET /admin/inventory/drift?document=default", "")
	const path = `200 {"data":[{"document":"default","account":"acme","path":"callback_url","declared":"https://example.com/cb","present":"https://example.com/other","deleted":false,"changed_at":"`
	answertest.HasPrefix(t, "the drift", got, path)
	answertest.Contains(t, "the drift", got, `"changed_by":"admin token","reset":null,"text":"account acme: callback_url: kept, changed over the API on `)
	answertest.Contains(t, "the drift", got, `"missing":["account acme: decoder d1"]}`)
	answertest.HasPrefix(t, "the drift of an unknown document", o.call("GET /admin/inventory/drift?document=other", ""), "404 ")
	answertest.Contains(t, "an account without a reset", o.call("PUT /admin/inventory?account=acme", acme), `"account":["The account requires reset`)
}

func TestOnlyAnAdminExportsSecrets(t *testing.T) {
	o := newOperatorAPI(t)
	o.mustApply(acme, "")
	const target = "GET /admin/inventory?present=true&secrets=true"
	got := o.call(target, "")
	answertest.HasPrefix(t, "the export", got, "200 ")
	answertest.Contains(t, "the export", got, `"token":"sha256:`+account.HashToken("hook-token-0123456")+`"`)
	answertest.Contains(t, "the export", got, `"webhook_secret":["`+secret+`"]`)
	status, _ := o.signIn(user.Operator, 0).send(target, "")
	relaytest.Equal(t, "the status for an operator", status, 403)
	answertest.Contains(t, "the audit log", o.call("GET /admin/audit", ""), `"operation":"getInventory","action":"Unknown request","target":"default"`)
}
