package admin

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestAnAccountIsRemoved removes an account after its credit and its users.
func TestAnAccountIsRemoved(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	admin := g.Admin()
	admin.Post("/admin/accounts", `{"name":"globex","credit":5}`).Mentions(t, 201, `"id":2`)
	globex := admin.With("X-Account", "globex")
	remove := func() e2e.Response { return admin.Do("DELETE", "/admin/accounts/globex", "") }
	remove().Mentions(t, 422, "The account holds credit.")
	admin.Post("/admin/accounts/globex/credit", `{"amount":-5,"reason":"Closing"}`).Mentions(t, 200, `"balance":0`)
	g.AddUser("carl", "account", "2")
	remove().Mentions(t, 422, "The account holds users.")
	admin.Do("DELETE", "/admin/users/carl", "").Mentions(t, 204)
	rule := globex.Create("/iot/rules", `{"name":"Warm","on":"reading","when":"values.temperature > 1","actions":[{"action":"http_post","parameters":["https://example.com/in"]}]}`)
	decoder := globex.Create("/iot/decoders", `{"name":"Meter","description":"A meter","type":"other"}`)
	globex.Get("/iot/rules/"+rule).Mentions(t, 200)
	globex.Get("/iot/decoders/"+decoder).Mentions(t, 200)
	remove().Expect(t, 204, "")
	globex.Get("/iot/decoders").Mentions(t, 403, "unknown account")
	admin.Get("/admin/decoders?account=2").Expect(t, 200, `{"data":[],"meta":{"next":""}}`)
	admin.Do("DELETE", "/admin/accounts/acme", "").Mentions(t, 422, "The inventory document default declares the account")
}
