package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// TestSIMsThatAreSpecial asks for what the simulator does not simply do: what the
// customer is answered, where the SIM is then, and what the callback is told.
func TestSIMsThatAreSpecial(t *testing.T) {
	t.Parallel()
	k := newSink(t, nil)
	const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
	g := start(t, &site{name: "embedded"}, fmt.Sprintf(`
accounts:
  - {name: acme, tokens: [{token: acme-all-0123456}], webhook_secret: %s, callback_url: %q, sims: [
      {iccid: "8944000000000009001"}, {iccid: "8944000000000009004"}, {iccid: "8944000000000009006"}]}
  - {name: globex, tokens: [{token: globex-all-0123456}]}`, secret, k.url+"/events"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	acme, sims := g.cellular("acme-all-0123456"), "/v3/mno/894400000000000"
	const who = `{"subscriber": {"forename": "Ada"}}`

	t.Run("an operator that is down is 424, and nothing is begun", func(t *testing.T) {
		acme.post(sims+"9004/activate", who).is(t, http.StatusFailedDependency,
			`{"success": false, "message": "Service temporarily unavailable. Please try again later."}`)
		acme.get(sims+"9004").mentions(t, 200, `"current_state":"pending","requested_state":"pending"`)
		acme.get("/v3/mno/job").mentions(t, 200, `"data":[]`)
		acme.get("/v3/mno/subscriber").mentions(t, 200, `"data":[]`)
	})
	t.Run("a refusal fails the job", func(t *testing.T) {
		id := g.ended(acme.post(sims+"9001/activate", who))
		acme.get("/v3/mno/job/"+id+"/status").is(t, 200, `{"success": true, "message": "Job found.",
			"data": {"id": "`+id+`", "status": "failed", "error": "The simulated operator refuses."}}`)
		acme.get(sims+"9001").mentions(t, 200, `"current_state":"pending","requested_state":"pending"`)
		g.cellular("globex-all-0123456").get("/v3/mno/job/"+id+"/status").is(t, 404, `{"success": false, "message": "Invalid job."}`)
		g.cellular("globex-all-0123456").post(sims+"9001/activate", who).is(t, 404, `{"success": false, "message": "SIM not found."}`)
	})
	t.Run("another state than asked for is where the SIM is", func(t *testing.T) {
		id := g.ended(acme.post(sims+"9006/activate", who))
		acme.get("/v3/mno/job/"+id+"/status").mentions(t, 200, `"error":"The operator reports the SIM as suspended."`)
		acme.get(sims+"9006").mentions(t, 200, `"current_state":"suspended","requested_state":"suspended"`)
		g.ended(acme.post(sims+"9006/unsuspend", ""))
		acme.get(sims+"9006").mentions(t, 200, `"current_state":"active","requested_state":"active"`)
	})
	t.Run("the callback is told of each, signed", func(t *testing.T) {
		k.await(t, "/events", 5)
		verify, err := webhooks.NewWebhook(secret)
		must(t, err)
		types := map[string]int{}
		for _, h := range k.at("/events") {
			must(t, verify.Verify([]byte(h.body), h.header))
			for _, kind := range []string{"job.completed", "job.failed", "sim.state_changed"} {
				if strings.Contains(h.body, `"type":"`+kind+`"`) {
					types[kind]++
				}
			}
		}
		if types["job.completed"] != 1 || types["job.failed"] != 2 || types["sim.state_changed"] != 2 {
			t.Errorf("told: %v", types)
		}
	})
}
