package admin

import (
	"regexp"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// internalText matches details of the gateway's network in connection errors: resolved addresses,
// resolvers, and hosts of back ends.
var internalText = regexp.MustCompile(`dial tcp|connect: |lookup |127\.0\.0\.1:3\b`)

// TestAccountsGetNoInternalText lets every connection fail that the gateway makes for an account. Answers
// to users and tokens of the account must not contain internal text. Answers to operators contain it.
func TestAccountsGetNoInternalText(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), `sensor_types: [{id: temperature, name: Temperature}]
accounts:
  - name: acme
    tokens: [{token: acme-all-0123456, scopes: [messaging, cellular, iot, ledger, webhook, carrier]}]
    credit: 100
    soap: {username: acme, password: secret}
    decoders: [{id: sent, name: Sent, type: other, codec: json, sensors: [{sensor_type_id: temperature, key: temperature}]}]
    relays:
      vmn:
        - {id: down, number: "447800020001", action: http_get, parameters: ["http://127.0.0.1:2/in"]}
        - {id: mail, number: "447800020002", action: email, parameters: ["someone@example.com"]}
`, "PENSTOCK_SMTP_ADDR=127.0.0.1:3", "PENSTOCK_SMTP_FROM=gw@example.com", "PENSTOCK_SMTP_TLS=none",
		"PENSTOCK_INFLUX_URL=http://127.0.0.1:3", "PENSTOCK_INFLUX_BUCKET=b", "PENSTOCK_DELIVERY_SCHEDULE=100ms", "PENSTOCK_INBOUND_ANSWER_WAIT=100ms")
	g.Configure(`carriers:
  - {type: kannel, name: kannel, url: "http://127.0.0.1:3/cgi-bin/sendsms", username: penstock, password: secret}
  - {type: smpp, name: smsc, addr: "127.0.0.1:3", prefixes: ["4477"]}
lookup: {type: http, url: "http://127.0.0.1:3/%number"}
operator: {type: http, url: "http://127.0.0.1:3"}
`)
	g.Run()
	acme := g.WithToken("acme-all-0123456")
	eventID := acme.PostInboundText("a1", "447800020001", "one")
	acme.PostInboundText("a2", "447800020002", "two")
	acme.Post("/webhooks/generic?decoder_id=sent", `{"deviceId":"shed-1","temperature":1}`).Mentions(t, 200, "data")
	device := acme.AwaitDevice("shed-1")
	messages := e2e.CustomerOf(g).SendMessages(e2e.SendBody(t, "http://127.0.0.1:2", nil, "4917012345", "447700900123"))
	g.AwaitDelivery("down", "dead")
	relaytest.Eventually(t, "the mail waits", func() (any, bool) {
		found := g.Deliveries("relay=mail")
		return found, len(found) == 1 && len(found[0].Attempts) > 0
	})
	relaytest.Equal(t, "the number of messages", len(messages), 2)
	g.AddUser("carl", "account", `"acme"`)
	carl := g.SignedIn("carl")
	for _, path := range []string{
		"/admin/deliveries", "/admin/breakers", "/admin/events", "/admin/events/" + eventID, "/admin/messages", "/admin/devices",
		"/admin/devices/" + device, "/admin/jobs", "/admin/relays", "/admin/rules", "/admin/sims", "/admin/alarms", "/readyz",
	} {
		resp := carl.Get(path)
		if resp.Status != 200 && path != "/readyz" {
			t.Errorf("%s: status = %d, want 200: %s", path, resp.Status, resp.Body)
		}
		if found := internalText.FindString(resp.Body); found != "" {
			t.Errorf("%s: %q in the answer to a user of the account: %s", path, found, resp.Body)
		}
	}
	if resp := carl.Get("/admin/deliveries?reason=dial"); internalText.MatchString(resp.Body) || len(g.Deliveries("reason=dial")) > 0 {
		t.Errorf("a search for hidden text has results: %s", resp.Body)
	}
	customer := e2e.CustomerOf(g)
	for _, resp := range []e2e.Response{
		customer.Get("/v2/network-lookup/447700900123"), customer.Get("/v3/mno/sims"), acme.Get("/iot/devices/" + device + "/readings"),
		customer.With("Content-Type", "text/xml").Post("/soap", e2e.SOAPEnvelope("acme", "447700900123")),
	} {
		if internalText.MatchString(resp.Body) {
			t.Errorf("%s: internal text in the answer to a token: %s", resp.Request, resp.Body)
		}
	}
	g.Admin().Get("/admin/deliveries?relay=down").Mentions(t, 200, "dial tcp 127.0.0.1:2: connect: connection refused")
	g.Admin().Get("/admin/status").Mentions(t, 200, "dial tcp 127.0.0.1:3")
}
