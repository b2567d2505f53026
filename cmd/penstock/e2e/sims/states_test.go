package sims

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestJobsThatTheOperatorDoesNotComplete requests jobs for SIMs with special answers of the simulated
// operator, and checks the answers, the states of the SIMs and the events at the callback URL.
func TestJobsThatTheOperatorDoesNotComplete(t *testing.T) {
	t.Parallel()
	sink := e2e.NewSink(t, nil)
	const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
	g := e2e.Start(t, e2e.Embedded(), fmt.Sprintf(`
accounts:
  - {name: acme, tokens: [{token: acme-all-0123456}], webhook_secret: %s, callback_url: %q, sims: [
      {iccid: "8944000000000009001"}, {iccid: "8944000000000009004"}, {iccid: "8944000000000009006"}]}
  - {name: globex, tokens: [{token: globex-all-0123456}]}`, secret, sink.URL+"/events"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	acme, sims := e2e.CustomerOf(g), "/v3/mno/894400000000000"
	const newSubscriber = `{"subscriber": {"forename": "Ada"}}`

	t.Run("a request is 424 and no job begins while the operator is down", func(t *testing.T) {
		acme.Post(sims+"9004/activate", newSubscriber).Expect(t, http.StatusFailedDependency,
			`{"success": false, "message": "Service temporarily unavailable. Please try again later."}`)
		acme.Get(sims+"9004").Mentions(t, 200, `"current_state":"pending","requested_state":"pending"`)
		acme.Get("/v3/mno/job").Mentions(t, 200, `"data":[]`)
		acme.Get("/v3/mno/subscriber").Mentions(t, 200, `"data":[]`)
	})
	t.Run("a refusal fails the job", func(t *testing.T) {
		id := g.AwaitJob(acme.Post(sims+"9001/activate", newSubscriber))
		acme.Get("/v3/mno/job/"+id+"/status").Expect(t, 200, `{"success": true, "message": "Job found.",
			"data": {"id": "`+id+`", "status": "failed", "error": "The simulated operator refuses."}}`)
		acme.Get(sims+"9001").Mentions(t, 200, `"current_state":"pending","requested_state":"pending"`)
		g.XAuth("globex-all-0123456").Get("/v3/mno/job/"+id+"/status").Expect(t, 404, `{"success": false, "message": "Invalid job."}`)
		g.XAuth("globex-all-0123456").Post(sims+"9001/activate", newSubscriber).Expect(t, 404, `{"success": false, "message": "SIM not found."}`)
	})
	t.Run("a SIM has the state that the operator reports, not the requested state", func(t *testing.T) {
		id := g.AwaitJob(acme.Post(sims+"9006/activate", newSubscriber))
		acme.Get("/v3/mno/job/"+id+"/status").Mentions(t, 200, `"error":"The operator reports the SIM as suspended."`)
		acme.Get(sims+"9006").Mentions(t, 200, `"current_state":"suspended","requested_state":"suspended"`)
		g.AwaitJob(acme.Post(sims+"9006/unsuspend", ""))
		acme.Get(sims+"9006").Mentions(t, 200, `"current_state":"active","requested_state":"active"`)
	})
	t.Run("the callback URL receives each event with a signature", func(t *testing.T) {
		sink.Await(t, "/events", 5)
		verify := relaytest.Must(webhooks.NewWebhook(secret))(t)
		types := map[string]int{}
		for _, req := range sink.Requests("/events") {
			relaytest.NoError(t, verify.Verify([]byte(req.Body), req.Header))
			for _, kind := range []string{"job.completed", "job.failed", "sim.state_changed"} {
				if strings.Contains(req.Body, `"type":"`+kind+`"`) {
					types[kind]++
				}
			}
		}
		relaytest.Equal(t, "the events", types, map[string]int{"job.completed": 1, "job.failed": 2, "sim.state_changed": 2})
	})
}
