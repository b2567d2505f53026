package sms

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestMessagesForASIM delivers messages to SIMs through the operator. After a change of the relay's
// action from mvno to another action, its waiting deliveries are dead.
func TestMessagesForASIM(t *testing.T) {
	t.Parallel()
	const inventory = `
accounts:
  - name: acme
    permissions: [mvno]
    tokens: [{token: acme-all-0123456, scopes: [messaging, carrier]}]
    sims: [{iccid: "8944000000000000001"}, {iccid: "8944000000000009004"}]
    relays:
      geo:
        - {id: good, prefix: "4478000", action: mvno, iccid: "8944000000000000001"}
        - {id: slow, prefix: "4478001", action: black_hole, iccid: "8944000000000009004"}
        - {id: none, prefix: "4478002", action: black_hole}`
	g := e2e.Start(t, e2e.Embedded(), inventory, "PENSTOCK_DELIVERY_SCHEDULE=300ms,300ms,300ms,300ms,300ms,300ms,300ms,300ms")
	acme := g.WithToken("acme-all-0123456")
	restAPI := e2e.CustomerOf(g).With("Content-Type", "application/json")
	g.Admin().Get("/readyz").Mentions(t, 200, `"operator":{"status":"ok","note":"simulated"}`)

	acme.PostInboundText("m1", "447800012345", "hello SIM")
	d := g.AwaitDelivery("good", "simulated")
	relaytest.Equal(t, "the target of the delivery", d.Target, "sim:8944000000000000001")
	relaytest.Equal(t, "the number of attempts", len(d.Attempts), 1)
	e := g.Explain(`{"from":"1","to":"447800012345","text":"a"}`)
	if e.Matched == nil {
		t.Fatal("no relay matched")
	}
	relaytest.Equal(t, "the action of the matched relay", e.Matched.Action, "mvno")
	relaytest.Equal(t, "the number of requests", len(e.Requests), 1)
	restAPI.Do("PATCH", "/v2/sms-relay/geo/none", `{"action":"mvno"}`).Mentions(t, 422, "needs a relay that names a SIM")
	restAPI.Do("PATCH", "/v2/sms-relay/geo/slow", `{"action":"mvno"}`).Mentions(t, 200, `"name":"mvno"`, `"parameters":[]`)
	acme.PostInboundText("m2", "447800112345", "hello slow SIM")
	g.AwaitDelivery("slow", "retrying")
	restAPI.Do("PATCH", "/v2/sms-relay/geo/slow", `{"action":"black_hole"}`).Mentions(t, 200, "black_hole")
	relaytest.Equal(t, "the reason of the dead delivery", g.AwaitDelivery("slow", "dead").Reason, "the relay slow no longer delivers to the SIM 8944000000000009004")
}
